// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "xds/limits.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

TEST_CASE("validation errors: every error is told with the path of its field", "[xds][errors]") {
  ValidationErrors errors;
  const Field& top = errors.top();
  const Field assignment = top.at("load_assignment");
  const Field locality = assignment.at("endpoints", 2);
  assignment.at("endpoints").add("must have exactly one entry, found 2");
  locality.at("locality").add("must be set, found none");
  top.at_key("typed_per_filter_config", "fault").add("is unknown");
  top.add("is odd");

  const absl::Status status = errors.status("CDS", "orders");

  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(
      status.message() ==
      R"(CDS resource "orders": load_assignment.endpoints: must have exactly one entry, found 2; )"
      R"(load_assignment.endpoints[2].locality: must be set, found none; )"
      R"(typed_per_filter_config["fault"]: is unknown; is odd)");
}

TEST_CASE("validation errors: none is empty, and a field sees what was added", "[xds][errors]") {
  ValidationErrors errors;
  const Field field = errors.top().at("name");
  CHECK(errors.empty());
  CHECK(field.errors_so_far() == 0);
  errors.top().add("is wrong");
  CHECK_FALSE(errors.empty());
  CHECK(field.errors_so_far() == 1);
}

TEST_CASE("validation errors: beyond the limit they are only counted", "[xds][errors]") {
  ValidationErrors errors;
  for (std::size_t i = 0; i < kMaxListedErrors + 7; ++i)
    errors.top().at("endpoints", i).add("bad");

  const std::string text(errors.status("EDS", "orders").message());

  CHECK(text.find("endpoints[31]: bad") != std::string::npos);
  CHECK(text.find("endpoints[32]") == std::string::npos);
  CHECK(text.find("; and 7 more errors") != std::string::npos);
}

TEST_CASE("validation errors: what is quoted is short and printable", "[xds][errors]") {
  CHECK(quoted("plain") == "\"plain\"");
  CHECK(quoted("a\nb\"") == R"("a\nb\"")");
  CHECK(quoted(std::string(1000, 'x')) == "\"" + std::string(kMaxQuotedLength, 'x') + "…\"");
}

}  // namespace signalbox::xds
