// SPDX-License-Identifier: Apache-2.0
#include "xds/node.hpp"

#include <string>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

namespace signalbox::xds {
namespace {

TEST_CASE("node: carries the bootstrap's node and what every client adds", "[xds][A27]") {
  const auto node = make_node({.id = "n1",
                               .cluster = "c",
                               .locality = NodeLocality{"r", "z", "s"},
                               .metadata_json = R"({"k": {"n": 1.5}, "list": ["x"]})"});
  REQUIRE(node.ok());
  CHECK(node->id() == "n1");
  CHECK(node->cluster() == "c");
  CHECK(node->locality().region() == "r");
  CHECK(node->locality().zone() == "z");
  CHECK(node->locality().sub_zone() == "s");
  const auto& fields = node->metadata().fields();
  CHECK(fields.at("k").struct_value().fields().at("n").number_value() == 1.5);
  CHECK(fields.at("list").list_value().values(0).string_value() == "x");
  CHECK(node->user_agent_name() == "signalbox");
  CHECK_FALSE(node->user_agent_version().empty());
  REQUIRE(node->client_features_size() == 2);
  CHECK(node->client_features(0) == "envoy.lb.does_not_support_overprovisioning");
  CHECK(node->client_features(1) == "xds.config.resource-in-sotw");
}

TEST_CASE("node: who spreads calls by health does not say that it cannot", "[xds][ENV-26]") {
  const auto node = make_node({}, /*overprovisions=*/true);
  REQUIRE(node.ok());
  REQUIRE(node->client_features_size() == 1);
  CHECK(node->client_features(0) == "xds.config.resource-in-sotw");
}

TEST_CASE("node: what the bootstrap leaves out stays unset", "[xds][A27]") {
  const auto node = make_node({});
  REQUIRE(node.ok());
  CHECK_FALSE(node->has_locality());
  CHECK_FALSE(node->has_metadata());
}

TEST_CASE("node: metadata that no message can hold is told with the bootstrap", "[xds][A27]") {
  CHECK_FALSE(make_node({.metadata_json = "[1]"}).ok());

  const auto bootstrap_with_levels = [](int levels) {
    std::string metadata = "{}";
    for (int level = 1; level < levels; ++level)
      metadata = R"({"a": )" + metadata + "}";
    return parse_bootstrap(
        R"({"signalbox.resources": "a", "node": {"metadata": )" + metadata + "}}", "test");
  };
  CHECK(bootstrap_with_levels(25).ok());
  const auto too_deep = bootstrap_with_levels(60);
  REQUIRE_FALSE(too_deep.ok());
  CHECK(absl::StartsWith(too_deep.status().message(), "test: node.metadata: "));
}

}  // namespace
}  // namespace signalbox::xds
