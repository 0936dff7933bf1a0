// SPDX-License-Identifier: Apache-2.0
//
// An aggregate cluster in tiered mode, with real calls.
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "tests/e2e/ads_peer.hpp"
#include "tests/e2e/runtime_world.hpp"
#include "tests/support/happened.hpp"

namespace signalbox::test::runtime_tiered_test {
namespace {

constexpr int kCalls = 4'000;

/// The load of one priority of a leaf of the aggregate "both", in percent, from the metrics.
std::optional<double> load(const Runtime& runtime, const std::string& leaf, int priority) {
  return metric(runtime,
                "signalbox_tier_load_percent",
                {"cluster=\"both\"",
                 absl::StrCat("leaf=\"", leaf, "\""),
                 absl::StrCat("priority=\"", priority, "\"")});
}

std::map<std::string, int> clusters_of_calls(
    const std::shared_ptr<grpc::ChannelInterface>& channel) {
  const auto stub = demo::v1::Orders::NewStub(channel);
  std::map<std::string, int> clusters;
  for (int i = 0; i < kCalls; ++i) {
    const Answer answer = call(*stub);
    ++clusters[answer.ok() ? answer.cluster : answer.text()];
  }
  return clusters;
}

/// Checks that `calls` is `percent` of kCalls, within five standard deviations.
void check_share(int calls, double percent) {
  const double share = percent / 100;
  const double sigma = std::sqrt(kCalls * share * (1 - share));
  INFO(calls << " of " << kCalls << " calls for " << percent << " %");
  CHECK(std::abs(calls - kCalls * share) <= 5 * sigma);
}

/// primary has two priorities, secondary one. Each backend's name is its priority's name.
struct World {
  BackendProcess first{"primary/0"};
  BackendProcess second{"primary/1"};
  BackendProcess third{"secondary/0"};
  RefusingAddress refusing;
  RefusingAddress refusing_too;
  RefusingAddress refusing_as_well;

  std::string yaml(const std::string& endpoints) const {
    return listener_yaml("orders", "routes") + routes_yaml("routes", "both") +
           aggregate_yaml("both", {"primary", "secondary"}) + cluster_yaml("primary") +
           cluster_yaml("secondary") + endpoints;
  }

  /// One of the four endpoints of primary/0 answers. primary/1 and secondary/0 have one endpoint
  /// each, which answers.
  std::string endpoints() const {
    return endpoints_yaml("primary",
                          {{first.address,
                            refusing.address(),
                            refusing_too.address(),
                            refusing_as_well.address()},
                           {second.address}}) +
           endpoints_yaml("secondary", {{third.address}});
  }
};

/// An EDS resource. Priority i has a healthy host, backends[first + i], with percents[i] of the
/// weight, and an UNHEALTHY host with the rest. A host without weight is left out.
std::string weighted_yaml(const std::string& service,
                          const std::vector<int>& percents,
                          const std::vector<std::unique_ptr<BackendProcess>>& backends,
                          std::size_t first) {
  const auto endpoint = [](const std::string& address, int weight, const char* health) {
    const std::size_t colon = address.rfind(':');
    return absl::StrCat("{endpoint: {address: {socket_address: {address: ",
                        address.substr(0, colon),
                        ", port_value: ",
                        address.substr(colon + 1),
                        "}}}, health_status: ",
                        health,
                        ", load_balancing_weight: ",
                        weight,
                        "}");
  };
  std::vector<std::string> localities;
  for (std::size_t at = 0; at < percents.size(); ++at) {
    const int percent = percents[at];
    std::vector<std::string> endpoints;
    if (percent > 0)
      endpoints.push_back(endpoint(backends[first + at]->address, percent, "HEALTHY"));
    if (percent < 100) {
      endpoints.push_back(
          endpoint(absl::StrCat("127.0.9.", first + at + 1, ":9"), 100 - percent, "UNHEALTHY"));
    }
    localities.push_back(absl::StrCat("{locality: {zone: z",
                                      at,
                                      "}, load_balancing_weight: 1, priority: ",
                                      at,
                                      ", lb_endpoints: [",
                                      absl::StrJoin(endpoints, ", "),
                                      "]}"));
  }
  return replaced(endpoints_yaml(service, {}),
                  "endpoints: []",
                  absl::StrCat("endpoints: [",
                               absl::StrJoin(localities, ", "),
                               "], policy: {weighted_priority_health: true}"));
}

// A fixed seed: the same calls get the same draws in every run.
std::unique_ptr<Runtime> start_tiered(const ControlPlane& plane) {
  RuntimeOptions options = options_for(plane.address());
  options.aggregate_mode = AggregateMode::kTiered;
  options.seed = 7;
  return start_runtime(std::move(options));
}

}  // namespace

TEST_CASE("runtime: calls to an aggregate in tiered mode are spread as its loads say",
          "[e2e][runtime][tiered][ENV-4][ENV-18][ENV-22]") {
  const World world;
  const auto plane = start_plane(world.yaml(world.endpoints()));
  const auto runtime = start_tiered(*plane);
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel, {.wait_for_ready = true}).ok());
  // The metrics change one after the other, so wait until all have their new values.
  REQUIRE(eventually([&] {
    return load(*runtime, "primary", 0) == 35 && load(*runtime, "primary", 1) == 65 &&
           load(*runtime, "secondary", 0) == 0;
  }));
  const auto plan = runtime->plan();
  REQUIRE(plan.ok());
  CHECK(plan->mode == AggregateMode::kTiered);  // The runtime's own mode.
  CHECK_FALSE(plan->mode_is_own);
  REQUIRE(eventually([&] { return call(channel).cluster == "primary/1"; }));
  auto calls = clusters_of_calls(channel);
  CHECK(calls.size() == 2);
  check_share(calls["primary/0"], 35);
  check_share(calls["primary/1"], 65);

  plane->update(resources(
      endpoints_yaml("primary",
                     {{world.first.address, world.refusing.address()},
                      {world.refusing_too.address(), world.refusing_as_well.address()}})));
  REQUIRE(eventually([&] {
    return load(*runtime, "primary", 0) == 70 && load(*runtime, "primary", 1) == 0 &&
           load(*runtime, "secondary", 0) == 30;
  }));
  REQUIRE(eventually([&] { return call(channel).cluster == "secondary/0"; }));
  calls = clusters_of_calls(channel);
  CHECK(calls.size() == 2);
  check_share(calls["primary/0"], 70);
  check_share(calls["secondary/0"], 30);

  // A removed leaf's gauges are removed.
  plane->update(resources(aggregate_yaml("both", {"secondary"})));
  CHECK(eventually([&] { return !load(*runtime, "primary", 0).has_value(); }));
  CHECK(eventually([&] { return load(*runtime, "secondary", 0) == 100; }));
}

TEST_CASE("runtime: real calls are spread as in the document's table",
          "[e2e][runtime][tiered][ENV-9][ENV-22]") {
  struct Row {
    std::vector<int> primary;  ///< Healthy hosts in percent, by priority.
    std::vector<int> secondary;
    std::vector<int> loads;  ///< The loads of all five priorities.
  };

  const std::vector<Row> table = {
      {{100, 100, 100}, {100, 100}, {100, 0, 0, 0, 0}},
      {{72, 100, 100}, {100, 100}, {100, 0, 0, 0, 0}},
      {{71, 1, 0}, {100, 100}, {99, 1, 0, 0, 0}},
      {{71, 0, 0}, {100, 100}, {99, 0, 0, 1, 0}},
      {{50, 0, 0}, {50, 0}, {70, 0, 0, 30, 0}},
      {{20, 20, 10}, {25, 25}, {28, 28, 14, 30, 0}},
      {{20, 0, 0}, {20, 0}, {50, 0, 0, 50, 0}},
      {{0, 0, 0}, {100, 0}, {0, 0, 0, 100, 0}},
      {{0, 0, 0}, {72, 0}, {0, 0, 0, 100, 0}},
  };
  const std::vector<std::string> names{
      "primary/0", "primary/1", "primary/2", "secondary/0", "secondary/1"};
  std::vector<std::unique_ptr<BackendProcess>> backends;
  backends.reserve(names.size());
  for (const std::string& name : names)
    backends.push_back(std::make_unique<BackendProcess>(name));
  // The percentages are weights: in each priority one endpoint answers (none at 0 %), and EDS marks
  // another one UNHEALTHY (none at 100 %).
  const auto endpoints = [&](const Row& row) {
    return weighted_yaml("primary", row.primary, backends, 0) +
           weighted_yaml("secondary", row.secondary, backends, row.primary.size());
  };
  const auto plane =
      start_plane(listener_yaml("orders", "routes") + routes_yaml("routes", "both") +
                  aggregate_yaml("both", {"primary", "secondary"}) + cluster_yaml("primary") +
                  cluster_yaml("secondary") + endpoints(table[0]));
  const auto runtime = start_tiered(*plane);
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel, {.wait_for_ready = true}).ok());
  for (const Row& row : table) {
    plane->update(resources(endpoints(row)));
    for (std::size_t at = 0; at < names.size(); ++at) {
      INFO(names[at] << " has " << row.loads[at] << " %");
      const std::string leaf = names[at].substr(0, names[at].size() - 2);
      const int priority = names[at].back() - '0';
      REQUIRE(eventually([&] { return load(*runtime, leaf, priority) == row.loads[at]; }));
      if (row.loads[at] > 0)
        REQUIRE(eventually([&] { return call(channel).cluster == names[at]; }));
    }
    auto calls = clusters_of_calls(channel);
    for (std::size_t at = 0; at < names.size(); ++at)
      check_share(calls[names[at]], row.loads[at]);
  }
}

TEST_CASE("runtime: without anybody who is fit calls say so, unless there is panic",
          "[e2e][runtime][tiered][ENV-17]") {
  const RefusingAddress refusing;
  const RefusingAddress refusing_too;
  const auto plane =
      start_plane(listener_yaml("orders", "routes") + routes_yaml("routes", "both") +
                  aggregate_yaml("both", {"primary", "secondary"}) + cluster_yaml("primary") +
                  cluster_yaml("secondary") + endpoints_yaml("primary", {{refusing.address()}}) +
                  endpoints_yaml("secondary", {{refusing_too.address()}}));
  RuntimeOptions options = options_for(plane->address());
  options.aggregate_mode = AggregateMode::kTiered;
  const auto runtime = start_runtime(std::move(options));
  const std::string text = wait_for_failure(runtime->channel("xds:///orders"));
  INFO(text);
  CHECK(text.find("no endpoint is healthy: primary 0 of 1 (") != std::string::npos);
  CHECK(text.find("secondary 0 of 1 (") != std::string::npos);
}

TEST_CASE("runtime: the mode of an aggregate may change while calls run, and none is lost",
          "[e2e][runtime][tiered][ENV-2]") {
  const BackendProcess first("primary");
  const BackendProcess second("secondary");
  const RefusingAddress refusing;
  const auto mode = [](const std::string& word) {
    return aggregate_yaml("both",
                          {"primary", "secondary"},
                          absl::StrCat(", metadata: {filter_metadata: {signalbox: "
                                       "{aggregate_mode: ",
                                       word,
                                       "}}}"));
  };
  const auto plane =
      start_plane(listener_yaml("orders", "routes") + routes_yaml("routes", "both") +
                  mode("priority") + cluster_yaml("primary") + cluster_yaml("secondary") +
                  endpoints_yaml("primary", {{first.address, refusing.address()}}) +
                  endpoints_yaml("secondary", {{second.address}}));
  const auto runtime = start_runtime(options_for(plane->address()));
  const auto channel = runtime->channel("xds:///orders");
  REQUIRE(call(channel, {.wait_for_ready = true}).ok());
  Traffic traffic(channel, 2);
  for (int turn = 0; turn < 3; ++turn) {
    plane->update(resources(mode("tiered")));
    REQUIRE(eventually([&] { return load(*runtime, "secondary", 0) == 30; }));
    REQUIRE(eventually([&] { return call(channel).cluster == "secondary"; }));
    plane->update(resources(mode("priority")));
    REQUIRE(eventually([&] { return !load(*runtime, "secondary", 0).has_value(); }));
  }
  const auto failures = traffic.finish();
  CHECK(failures == std::vector<std::string>{});
}

TEST_CASE("runtime: a control plane is told who does not spread calls by health",
          "[e2e][runtime][tiered][ENV-26]") {
  const auto mode = GENERATE(AggregateMode::kPriority, AggregateMode::kTiered);
  Happened<std::string> heard;
  const AdsPeer plane({.hear = [&](std::string bytes) { heard.add(std::move(bytes)); }});
  RuntimeOptions options = options_for(plane.address());
  options.aggregate_mode = mode;
  const auto runtime = start_runtime(std::move(options));
  const auto router = runtime->router("xds:///orders");
  REQUIRE(router.ok());
  const std::string first = heard.next();
  CHECK(absl::StrContains(first, kNodeId));
  CHECK(absl::StrContains(first, "envoy.lb.does_not_support_overprovisioning") ==
        (mode == AggregateMode::kPriority));
}

TEST_CASE("runtime: a panic threshold is a percentage", "[e2e][runtime][tiered][ENV-17]") {
  RuntimeOptions options = options_for("127.0.0.1:1");
  options.panic_threshold = 101;
  const auto refused = Runtime::start(std::move(options));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status() ==
        absl::InvalidArgumentError(
            "RuntimeOptions::panic_threshold: must be at most 100 (percent), found 101"));
}

}  // namespace signalbox::test::runtime_tiered_test
