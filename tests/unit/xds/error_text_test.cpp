// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/error_text.hpp"

#include <string>

#include <catch2/catch.hpp>

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

}  // namespace
}  // namespace signalbox::xds
