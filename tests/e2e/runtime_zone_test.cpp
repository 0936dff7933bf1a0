// SPDX-License-Identifier: Apache-2.0
//
// Zone-aware routing with real calls: they stay in the caller's zone, and spill over when it loses
// endpoints. Calls are counted by zone.
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "tests/e2e/ads_peer.hpp"
#include "tests/e2e/lb_endpoints_yaml.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace signalbox::test {
namespace {

constexpr int kCalls = 2'000;
constexpr const char* kZoneAware =
    ", common_lb_config: {zone_aware_lb_config: {min_cluster_size: 2}}";

/// An EDS resource of the cluster "c": one priority, with a locality for each zone.
std::string zones_yaml(const std::map<std::string, std::vector<std::string>>& zones) {
  std::vector<std::string> localities;
  localities.reserve(zones.size());
  for (const auto& [zone, addresses] : zones) {
    localities.push_back(absl::StrCat("{locality: {region: north, zone: ",
                                      zone,
                                      "}, load_balancing_weight: 1, lb_endpoints: [",
                                      lb_endpoints_yaml(addresses),
                                      "]}"));
  }
  return replaced(endpoints_yaml("c", {}),
                  "endpoints: []",
                  absl::StrCat("endpoints: [", absl::StrJoin(localities, ", "), "]"));
}

RuntimeOptions options_in_zone(const std::string& server, const std::string& zone) {
  RuntimeOptions options = options_for(server);
  const std::string node = absl::StrCat("\"id\":\"", kNodeId, "\"");
  options.bootstrap_json =
      replaced(*options.bootstrap_json,
               node,
               absl::StrCat(node, ",\"locality\":{\"region\":\"north\",\"zone\":\"", zone, "\"}"));
  return options;
}

double calls_of_zone(const Runtime& runtime, const std::string& zone) {
  return metric(runtime,
                "signalbox_zone_calls_total",
                {"cluster=\"c\"", absl::StrCat("zone=\"", zone, "\"")})
      .value_or(0);
}

/// The share of the next kCalls calls that go to each backend.
std::map<std::string, double> shares(const std::shared_ptr<grpc::ChannelInterface>& channel) {
  const auto stub = demo::v1::Orders::NewStub(channel);
  std::map<std::string, double> shares;
  for (int i = 0; i < kCalls; ++i) {
    const Answer answer = call(*stub);
    shares[answer.ok() ? answer.cluster : answer.text()] += 1.0 / kCalls;
  }
  return shares;
}

/// Within five standard deviations.
Approx about(double share) {
  return Approx(share).margin(5 * std::sqrt(share * (1 - share) / kCalls));
}

/// Waits until twenty calls in a row go to the backend.
bool all_go_to(const std::shared_ptr<grpc::ChannelInterface>& channel, const std::string& backend) {
  return eventually([&] {
    for (int i = 0; i < 20; ++i) {
      if (call(channel).cluster != backend) return false;
    }
    return true;
  });
}

}  // namespace

TEST_CASE("runtime: zone-aware calls stay in the caller's zone, and spill over by capacity",
          "[e2e][runtime][zone_split][ENV-34][ENV-35]") {
  const HoldingBackend a1("a");
  const HoldingBackend a2("a");
  const HoldingBackend b1("b");
  const HoldingBackend b2("b");
  const RefusingAddress refusing;
  const auto plane = start_plane(
      listener_yaml("orders", "routes") + routes_yaml("routes", "c") +
      cluster_yaml("c", "", kZoneAware) +
      zones_yaml({{"a", {a1.address(), a2.address()}}, {"b", {b1.address(), b2.address()}}}));
  const auto runtime = start_runtime(options_in_zone(plane->address(), "a"));
  const auto channel = runtime->channel("xds:///orders");
  const auto ready = [&](int endpoints) {
    return eventually(
        [&] { return metric(*runtime, "signalbox_endpoints", {"state=\"ready\""}) == endpoints; });
  };
  REQUIRE(call(channel, {.wait_for_ready = true}).ok());
  REQUIRE(ready(4));
  // The picker follows the states of the endpoints soon.
  REQUIRE(all_go_to(channel, "a"));
  const double before = calls_of_zone(*runtime, "own");
  const double crossed = calls_of_zone(*runtime, "other");
  auto stayed = shares(channel);
  CHECK(stayed.size() == 1);
  CHECK(stayed["a"] == Approx(1));
  CHECK(calls_of_zone(*runtime, "own") == before + kCalls);
  CHECK(calls_of_zone(*runtime, "other") == crossed);
  CHECK(calls_of_zone(*runtime, "unknown") == 0);

  // With one of three endpoints, the zone keeps two thirds of the calls of half of the callers.
  plane->update(resources(zones_yaml(
      {{"a", {a1.address(), refusing.address()}}, {"b", {b1.address(), b2.address()}}})));
  REQUIRE(eventually([&] { return call(channel).cluster == "b"; }));
  auto spilt = shares(channel);
  CHECK(spilt["a"] == about(0.6666));
  CHECK(spilt["b"] == about(0.3334));
  const auto plan = runtime->plan();
  REQUIRE(plan.ok());
  CHECK(plan->caller == LocalityName{"north", "a", ""});
  CHECK(plan->own_zone.priority.now == kAllCalls);  // A plan does not know what is refused.

  plane->update(
      resources(zones_yaml({{"a", {refusing.address()}}, {"b", {b1.address(), b2.address()}}})));
  REQUIRE(all_go_to(channel, "b"));
  CHECK(calls_of_zone(*runtime, "other") > crossed);
}

TEST_CASE(
    "runtime: a resource file may ask for zone-aware routing, and a node without a zone has none",
    "[e2e][runtime][zone_split][ENV-36][ENV-39]") {
  const HoldingBackend a("a");
  const HoldingBackend b("b");
  const TemporaryFolder folder;
  folder.write("resources.yaml",
               "resources:\n" + listener_yaml("orders", "routes") + routes_yaml("routes", "c") +
                   cluster_yaml("c", "", kZoneAware) +
                   zones_yaml({{"a", {a.address()}}, {"b", {b.address()}}}));
  const bool has_zone = GENERATE(true, false);
  folder.write(
      "bootstrap.json",
      absl::StrCat(
          R"({"signalbox.resources": "resources.yaml")",
          has_zone ? R"(, "node": {"locality": {"region": "north", "zone": "b"}}})" : "}"));
  RuntimeOptions options = options_for("");
  options.bootstrap_json = std::nullopt;
  options.bootstrap_path = folder.path("bootstrap.json");
  const auto runtime = start_runtime(std::move(options));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel, {.wait_for_ready = true}).ok());
  REQUIRE(eventually(
      [&] { return metric(*runtime, "signalbox_endpoints", {"state=\"ready\""}) == 2; }));
  if (has_zone) {
    REQUIRE(all_go_to(channel, "b"));
    CHECK(calls_of_zone(*runtime, "own") >= 20);
  } else {
    REQUIRE(eventually([&] { return call(channel).cluster == "a"; }));
    REQUIRE(eventually([&] { return call(channel).cluster == "b"; }));
    CHECK(calls_of_zone(*runtime, "own") == 0);
    CHECK(calls_of_zone(*runtime, "unknown") > 0);
  }
}

}  // namespace signalbox::test
