// SPDX-License-Identifier: Apache-2.0
#include "tools/load/drained_resources.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

constexpr const char* kResources = R"(
resources:
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: orders
    endpoints:
      - lb_endpoints:
          - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 7001}}}
            healthStatus: HEALTHY
          - endpoint: {address: {socketAddress: {address: "::1", portValue: 7002}}}
)";

nlohmann::json endpoint(const DrainedResources& resources, std::size_t index) {
  const auto root = nlohmann::json::parse(resources.text());
  return root.at("resources").at(0).at("endpoints").at(0).at("lb_endpoints").at(index);
}

}  // namespace

TEST_CASE("drained resources: endpoints drain, and are as they were", "[load][drain]") {
  auto resources = DrainedResources::parse(kResources, "resources.yaml");
  REQUIRE(resources.status().ToString() == "OK");
  CHECK(resources->endpoints() == std::vector<std::string>{"127.0.0.1:7001", "[::1]:7002"});
  CHECK(resources->drain("127.0.0.1:7001", true).ok());
  CHECK(endpoint(*resources, 0).at("health_status") == "DRAINING");
  CHECK_FALSE(endpoint(*resources, 0).contains("healthStatus"));
  CHECK_FALSE(endpoint(*resources, 1).contains("health_status"));
  CHECK(resources->drain("127.0.0.1:7001", false).ok());
  CHECK(endpoint(*resources, 0).at("healthStatus") == "HEALTHY");
}

TEST_CASE("drained resources: an endpoint is led through a proxy", "[load][drain]") {
  auto resources = DrainedResources::parse(kResources, "resources.yaml");
  resources->lead("[::1]:7002", "127.0.0.1:9");
  CHECK(resources->drain("[::1]:7002", true).ok());
  CHECK(endpoint(*resources, 1).at("endpoint").at("address") ==
        nlohmann::json{{"socket_address", {{"address", "127.0.0.1"}, {"port_value", 9}}}});
  CHECK(endpoint(*resources, 1).at("health_status") == "DRAINING");
}

TEST_CASE("drained resources: an unknown address is refused", "[load][drain]") {
  auto resources = DrainedResources::parse(kResources, "resources.yaml");
  const auto status = resources->drain("127.0.0.1:7", true);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()), Catch::Contains("there are: 127.0.0.1:7001, [::1]"));
  CHECK_FALSE(DrainedResources::parse("resources: [", "resources.yaml").ok());
}

}  // namespace signalbox::tools
