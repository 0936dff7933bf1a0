// SPDX-License-Identifier: Apache-2.0
#include "lb/connected_text.hpp"

#include <catch2/catch.hpp>

#include "tests/support/xds_resources.hpp"

namespace signalbox::lb {
namespace {

using tests::endpoints;
using tests::locality;

ClusterConfigPtr leaf(EndpointsPtr assigned) {
  auto config = std::make_shared<ClusterConfig>();
  config->children = LeafEndpoints{std::move(assigned), ""};
  return config;
}

TEST_CASE("connected_text: counts endpoints and localities over priorities and clusters",
          "[lb][connected_text]") {
  XdsConfig config;
  config.clusters.emplace(ClusterName("a"),
                          leaf(endpoints({{locality("x", {"1", "2"})}, {locality("y", {"3"})}})));
  config.clusters.emplace(ClusterName("b"), leaf(endpoints({{locality("z", {"4"})}})));
  config.clusters.emplace(ClusterName("gone"), absl::NotFoundError("gone"));
  auto aggregate = std::make_shared<ClusterConfig>();
  aggregate->children = AggregateLeaves{{ClusterName("a"), ClusterName("b")}};
  config.clusters.emplace(ClusterName("both"), ClusterConfigPtr(std::move(aggregate)));
  config.clusters.emplace(ClusterName("unknown"), std::make_shared<const ClusterConfig>());
  CHECK(connected_text(config, {"7", "", "7", "7"}) ==
        "connected: 4 endpoints in 3 localities, version 7");
}

TEST_CASE("connected_text: says one as one, and versions that differ each with its type",
          "[lb][connected_text]") {
  XdsConfig config;
  config.clusters.emplace(ClusterName("a"), leaf(endpoints({{locality("x", {"1"})}})));
  CHECK(connected_text(config, {}) == "connected: 1 endpoint in 1 locality, without a version");
  CHECK(connected_text(config, {"7", "8", "", "9"}) ==
        "connected: 1 endpoint in 1 locality, versions LDS 7, RDS 8, EDS 9");
}

}  // namespace
}  // namespace signalbox::lb
