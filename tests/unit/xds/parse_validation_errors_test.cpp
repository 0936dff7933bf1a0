// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "xds/limits.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/utf8.hpp"

namespace signalbox::xds {
namespace {

const ParseOptions kOptions;

}  // namespace

TEST_CASE("validation errors: every error is told with the path of its field", "[xds][errors]") {
  ValidationErrors errors(kOptions);
  const Field& top = errors.top();
  const Field assignment = top.at("load_assignment");
  const Field locality = assignment.at("endpoints", 2);
  assignment.at("endpoints").add("must have exactly one entry, found 2");
  locality.at("locality").add("must be set, found none");
  top.at_key("typed_per_filter_config", "fault").add("is unknown");
  top.add("is odd");

  const ReceivedResource refused = errors.refuse("CDS", "orders");
  const absl::Status& status = refused.resource.status();

  CHECK(refused.name == "orders");

  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(
      status.message() ==
      R"(CDS resource "orders": load_assignment.endpoints: must have exactly one entry, found 2; )"
      R"(load_assignment.endpoints[2].locality: must be set, found none; )"
      R"(typed_per_filter_config["fault"]: is unknown; is odd)");
}

TEST_CASE("validation errors: none is empty, and a field sees what was added", "[xds][errors]") {
  ValidationErrors errors(kOptions);
  const Field field = errors.top().at("name");
  CHECK(errors.empty());
  CHECK(field.errors_so_far() == 0);
  errors.top().add("is wrong");
  CHECK_FALSE(errors.empty());
  CHECK(field.errors_so_far() == 1);
}

TEST_CASE("validation errors: beyond the limit they are only counted", "[xds][errors]") {
  ValidationErrors errors(kOptions);
  for (std::size_t i = 0; i < kMaxListedErrors + 7; ++i)
    errors.top().at("endpoints", i).add("bad");

  const std::string text(errors.refuse("EDS", "orders").resource.status().message());

  CHECK(text.find("endpoints[31]: bad") != std::string::npos);
  CHECK(text.find("endpoints[32]") == std::string::npos);
  CHECK(text.find("; and 7 more errors") != std::string::npos);
}

TEST_CASE("validation errors: a parser stops at many, and their number is then only the least",
          "[xds][errors][limits]") {
  ValidationErrors errors(kOptions);
  const Field field = errors.top().at("endpoints");
  const auto text = [&errors] {
    return std::string(errors.refuse("EDS", "orders").resource.status().message());
  };
  while (field.errors_so_far() < kManyErrors - 1)
    field.add("bad");
  CHECK_FALSE(field.is_enough());
  CHECK(text().ends_with("; and 967 more errors"));
  field.add("bad");
  CHECK(field.is_enough());
  CHECK(text().ends_with("; and at least 968 more errors"));
}

TEST_CASE("validation errors: of several reasons the most telling is kept",
          "[xds][errors][limits]") {
  struct Row {
    std::string errors;  ///< s: semantic, p: undecodable, l and m: over a limit of that name.
    RejectionReason reason;
    std::string limit;
  };

  const auto row = GENERATE(values<Row>({
      {"s", RejectionReason::kSemantic, ""},
      {"p", RejectionReason::kParse, ""},
      {"l", RejectionReason::kLimit, "l"},
      {"sp", RejectionReason::kParse, ""},
      {"ps", RejectionReason::kParse, ""},
      {"spl", RejectionReason::kLimit, "l"},
      {"lps", RejectionReason::kLimit, "l"},
      {"ml", RejectionReason::kLimit, "m"},
  }));
  ValidationErrors errors(kOptions);
  for (const char kind : row.errors) {
    if (kind == 's')
      errors.top().add("is odd");
    else if (kind == 'p')
      errors.top().add_undecodable("is noise");
    else
      errors.top().add_over_limit(std::string(1, kind), "is much");
  }
  CAPTURE(row.errors);
  CHECK(errors.refuse("CDS", "orders").rejection == Rejection{row.reason, row.limit});
}

TEST_CASE("validation errors: what goes beyond a limit names it", "[xds][errors][limits]") {
  ValidationErrors errors(kOptions);
  const Field routes = errors.top().at("routes");
  routes.add_over_limit("max_routes", "must have at most 1, found 2");
  CHECK(errors.refuse("RDS", "r").resource.status().message() ==
        R"(RDS resource "r": routes: must have at most 1, found 2 (limit max_routes))");
}

TEST_CASE("validation errors: a field knows the options of its resource", "[xds][errors]") {
  ParseOptions options;
  options.limits.max_routes = 7;
  const ValidationErrors errors(options);
  const Field deep = errors.top().at("a", 3);
  CHECK(deep.options().limits.max_routes == 7);
}

TEST_CASE("validation errors: what is quoted is short and printable", "[xds][errors]") {
  CHECK(in_quotes("plain") == "\"plain\"");
  CHECK(in_quotes("a\nb\"") == R"("a\nb\"")");
  CHECK(in_quotes(std::string(1000, 'x')) == "\"" + std::string(kMaxQuotedLength, 'x') + "…\"");
}

TEST_CASE("validation errors: what is quoted is UTF-8, whatever it was", "[xds][errors]") {
  CHECK(in_quotes("é\n") == "\"é\\n\"");
  CHECK(in_quotes("\xff!") == R"("\377!")");
  // The limit cuts no character in two, neither one of two bytes nor one of four.
  const std::string almost(kMaxQuotedLength - 1, 'x');
  CHECK(in_quotes(almost + "éé") == "\"" + almost + "…\"");
  CHECK(in_quotes(almost + "é") == "\"" + almost + "…\"");
  const std::string less = almost.substr(2);
  CHECK(in_quotes(less + "🚦") == "\"" + less + "…\"");
  CHECK(in_quotes(less.substr(1) + "🚦") == "\"" + less.substr(1) + "🚦\"");
  CHECK(is_utf8(in_quotes(std::string(1000, '\x80'))));
}

}  // namespace signalbox::xds
