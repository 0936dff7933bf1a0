// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_topology.hpp"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "actors/io/watched_file.hpp"
#include "messages/resource.hpp"
#include "xds/parse/parse_resource.hpp"
#include "xds/type_url.hpp"

namespace signalbox::tools {
namespace {

std::string demo_text() {
  return actors::read_file(SIGNALBOX_DEMO_RESOURCES).value();
}

// Resources as a client parses them. They can be compared, unlike their bytes: the same message may
// have different bytes.
std::vector<Resource> understood(const std::string& text, xds::Format format) {
  const auto resources = xds::parse_resources_text(text, format, "resources");
  INFO(resources.status().ToString());
  REQUIRE(resources.ok());
  std::vector<Resource> values;
  for (const auto& resource : *resources) {
    const auto parsed = xds::parse_resource(
        *xds::resource_type_of(resource.type_url), resource.type_url, resource.bytes);
    INFO(parsed.resource.status().ToString());
    REQUIRE(parsed.resource.ok());
    values.push_back(*parsed.resource);
  }
  return values;
}

}  // namespace

TEST_CASE("demo_topology: reads clusters and places from the demo's resources", "[tools][demo]") {
  const auto topology = DemoTopology::parse(demo_text(), "resources.yaml");
  INFO(topology.status().ToString());
  REQUIRE(topology.ok());
  CHECK(topology->target() == "xds:///orders");
  CHECK(topology->aggregate() == "orders");
  CHECK(topology->leaves() ==
        std::vector<std::string>{"orders-primary", "orders-secondary", "orders-legacy"});
  REQUIRE(topology->places().size() == 7);
  CHECK(topology->places()[0] == BackendPlace{"orders-legacy-1", "orders-legacy", "localhost"});
  CHECK(topology->places()[4] == BackendPlace{"orders-primary-4", "orders-primary", "127.0.0.14"});
}

TEST_CASE("demo_topology: puts the ports of the backends in, and changes nothing else",
          "[tools][demo]") {
  const auto topology = DemoTopology::parse(demo_text(), "resources.yaml");
  REQUIRE(topology.ok());
  std::map<std::string, int> ports;
  for (const auto& place : topology->places())
    ports.emplace(place.name, 7000);
  const auto text = topology->resources(ports);
  REQUIRE(text.ok());

  const std::string expected_text =
      absl::StrReplaceAll(demo_text(),
                          {{"port_value: 50011", "port_value: 7000"},
                           {"port_value: 50012", "port_value: 7000"},
                           {"port_value: 50013", "port_value: 7000"},
                           {"port_value: 50014", "port_value: 7000"},
                           {"port_value: 50021", "port_value: 7000"},
                           {"port_value: 50022", "port_value: 7000"},
                           {"port_value: 50031", "port_value: 7000"}});
  CHECK(understood(*text, xds::Format::kJson).size() == 8);
  // The same message may have its bytes in another order, but its JSON is always the same.
  const auto expected = DemoTopology::parse(expected_text, "expected.yaml");
  REQUIRE(expected.ok());
  CHECK(nlohmann::json::parse(*text) == nlohmann::json::parse(expected->resources({}).value()));
}

TEST_CASE("demo_topology: turns the order of the aggregate's clusters, and changes nothing else",
          "[tools][demo][drill]") {
  const auto topology = DemoTopology::parse(demo_text(), "resources.yaml");
  REQUIRE(topology.ok());
  const auto turned = [&](std::size_t first) {
    const auto text = topology->resources({}, first);
    INFO(text.status().ToString());
    REQUIRE(text.ok());
    const auto parsed = DemoTopology::parse(*text, "resources.json");
    REQUIRE(parsed.ok());
    return *parsed;
  };
  const std::vector<std::string> leaves = topology->leaves();
  CHECK(turned(0).leaves() == leaves);
  CHECK(turned(1).leaves() == std::vector<std::string>{leaves[1], leaves[2], leaves[0]});
  CHECK(turned(2).leaves() == std::vector<std::string>{leaves[2], leaves[0], leaves[1]});
  CHECK(nlohmann::json::parse(turned(2).resources({}, 1).value()) ==
        nlohmann::json::parse(topology->resources({}).value()));
}

TEST_CASE("demo_topology: one endpoint drains or has a lower priority, and no other changes",
          "[tools][demo][session]") {
  const auto topology = DemoTopology::parse(demo_text(), "resources.yaml");
  REQUIRE(topology.ok());
  // The endpoints in order, as "priority address"; a DRAINING endpoint has a '!'.
  const auto places = [&](EndpointChange::Kind kind) {
    const auto text = topology->resources({}, 0, {kind, "orders-primary-2"});
    INFO(text.status().ToString());
    REQUIRE(text.ok());
    std::string told;
    for (const Resource& resource : understood(*text, xds::Format::kJson)) {
      const auto* const endpoints = std::get_if<EndpointsPtr>(&resource);
      if (endpoints == nullptr) continue;
      for (std::size_t priority = 0; priority < (*endpoints)->priorities.size(); ++priority) {
        for (const LocalityPtr& locality : (*endpoints)->priorities[priority].localities) {
          for (const Endpoint& endpoint : locality->endpoints) {
            absl::StrAppend(&told,
                            priority,
                            " ",
                            absl::StripPrefix(endpoint.addresses.front().str(), "127.0.0."),
                            endpoint.health == HealthStatus::kDraining ? "! " : " ");
          }
        }
      }
    }
    return told;
  };
  using Kind = EndpointChange::Kind;
  CHECK(places(Kind::kNone) ==
        "0 11:50011 0 12:50012 0 13:50013 0 14:50014 0 21:50021 0 22:50022 ");
  CHECK(places(Kind::kDraining) ==
        "0 11:50011 0 12:50012! 0 13:50013 0 14:50014 0 21:50021 0 22:50022 ");
  CHECK(places(Kind::kLowerPriority) ==
        "0 11:50011 0 13:50013 0 14:50014 1 12:50012 0 21:50021 0 22:50022 ");
}

TEST_CASE("demo_topology: an address takes the place of a host's name everywhere",
          "[tools][demo]") {
  auto topology = DemoTopology::parse(demo_text(), "resources.yaml");
  REQUIRE(topology.ok());
  topology->replace_host("localhost", "127.0.0.1");
  CHECK(topology->places()[0].host == "127.0.0.1");
  CHECK(topology->places()[4].host == "127.0.0.14");
  const auto expected =
      DemoTopology::parse(absl::StrReplaceAll(demo_text(), {{"localhost", "127.0.0.1"}}), "r.yaml");
  REQUIRE(expected.ok());
  CHECK(nlohmann::json::parse(topology->resources({}).value()) ==
        nlohmann::json::parse(expected->resources({}).value()));
}

TEST_CASE("demo_topology: the demo's resources are valid for a client", "[tools][demo]") {
  CHECK(understood(demo_text(), xds::Format::kYaml).size() == 8);
}

TEST_CASE("demo_topology: refuses a world that the script cannot play on", "[tools][demo]") {
  CHECK_FALSE(DemoTopology::parse("resources: []", "empty.yaml").ok());
  const std::string two = absl::StrReplaceAll(
      demo_text(),
      {{"[orders-primary, orders-secondary, orders-legacy]", "[orders-primary, orders-legacy]"}});
  CHECK_FALSE(DemoTopology::parse(two, "two.yaml").ok());
  const auto elsewhere =
      DemoTopology::parse(absl::StrReplaceAll(demo_text(),
                                              {{"[orders-primary, orders-secondary, orders-legacy]",
                                                "[orders-primary, orders-secondary, nowhere]"}}),
                          "elsewhere.yaml");
  CHECK_FALSE(elsewhere.ok());
  CHECK(std::string(elsewhere.status().message()).find("elsewhere.yaml: ") == 0);
}

}  // namespace signalbox::tools
