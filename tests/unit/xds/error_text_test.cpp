// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/error_text.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "xds/client/resource_text.hpp"

namespace signalbox::xds {
namespace {

TEST_CASE("error_text: names the node where it has an ID, and says nothing of it where not",
          "[xds][A88]") {
  const ResourceKey key{ResourceType::kEndpoints, "e"};
  const absl::Status refused = absl::UnavailableError("connection refused");
  const ErrorText named("xds:///orders", "n");
  CHECK(named.explain(key, refused) ==
        "xds:///orders: EDS resource \"e\": connection refused (node ID: n)");
  CHECK(named.node() == "node ID: n");
  const ErrorText nameless("xds:///orders", "");
  CHECK(nameless.explain(key, refused) == "xds:///orders: EDS resource \"e\": connection refused");
  CHECK(nameless.unavailable("no configuration").message() == "xds:///orders: no configuration");
  CHECK(nameless.node().empty());
}

TEST_CASE("error_text: of many names, eight are listed", "[xds]") {
  std::vector<std::string> names(8, "n");
  const std::string eight = R"("n", "n", "n", "n", "n", "n", "n", "n")";
  CHECK(listed(names) == eight);
  names.emplace_back("m");
  CHECK(listed(names) == eight + " and 1 more");
  CHECK(listed({}).empty());
}

}  // namespace
}  // namespace signalbox::xds
