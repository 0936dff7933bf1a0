// SPDX-License-Identifier: Apache-2.0
#include "messages/lb_config.hpp"

#include <functional>
#include <iterator>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox {
namespace {

LbConfigPtr round_robin() {
  return make_lb_config(RoundRobinConfig{});
}

LbConfigPtr pick_first(bool shuffle) {
  return make_lb_config(PickFirstConfig{shuffle});
}

LbConfigPtr priority(const LbConfigPtr& child) {
  PriorityConfig config;
  config.cluster = ClusterName("orders");
  config.children[ChildName("p0")] = {child, 0, true};
  config.children[ChildName("p1")] = {child, std::nullopt, false};
  config.priorities = {ChildName("p0"), ChildName("p1")};
  return make_lb_config(config);
}

// Makers of most kinds of configurations, and of configurations with one field changed. No two
// makers make equal configurations.
std::vector<std::function<LbConfigPtr()>> makers() {
  const ClusterName cluster("orders");
  return {
      [] { return round_robin(); },
      [] { return pick_first(false); },
      [] { return pick_first(true); },
      [] { return make_lb_config(WrrLocalityConfig{round_robin()}); },
      [] { return make_lb_config(WrrLocalityConfig{pick_first(true)}); },
      [] { return make_lb_config(WrrLocalityConfig{nullptr}); },
      [] { return make_lb_config(RingHashConfig{}); },
      [] { return make_lb_config(RingHashConfig{1, 8'388'608}); },
      [] { return make_lb_config(RingHashConfig{1, 2}); },
      [] { return make_lb_config(RingHashConfig{1, 2, "session"}); },
      [] { return make_lb_config(LeastRequestConfig{2}); },
      [] { return make_lb_config(LeastRequestConfig{3}); },
      [] {
        WeightedTargetConfig config;
        config.targets[ChildName("a")] = {3, round_robin(), LocalityName{"eu", "1", ""}};
        return make_lb_config(config);
      },
      [] {
        WeightedTargetConfig config;
        config.targets[ChildName("a")] = {4, round_robin(), LocalityName{"eu", "1", ""}};
        return make_lb_config(config);
      },
      [] {
        WeightedTargetConfig config;
        config.targets[ChildName("a")] = {3, round_robin(), LocalityName{"eu", "2", ""}};
        return make_lb_config(config);
      },
      [] { return priority(round_robin()); },
      [] { return priority(pick_first(false)); },
      [] {
        auto config = std::get<PriorityConfig>(*priority(round_robin()));
        std::swap(config.priorities[0], config.priorities[1]);
        return make_lb_config(config);
      },
      [] {
        auto config = std::get<PriorityConfig>(*priority(round_robin()));
        config.children[ChildName("p1")].slice = 1;
        return make_lb_config(config);
      },
      [] {
        auto config = std::get<PriorityConfig>(*priority(round_robin()));
        config.children[ChildName("p0")].ignore_reresolution_requests = false;
        return make_lb_config(config);
      },
      [=] { return make_lb_config(OverrideHostConfig{cluster, round_robin()}); },
      [=] {
        return make_lb_config(OverrideHostConfig{cluster, round_robin(), std::chrono::minutes(1)});
      },
      [=] {
        OverrideHostConfig config{cluster, round_robin()};
        config.sessions = true;
        return make_lb_config(config);
      },
      [=] { return make_lb_config(ClusterImplConfig{cluster, round_robin()}); },
      [] { return make_lb_config(ClusterImplConfig{ClusterName("stock"), round_robin()}); },
      [=] { return make_lb_config(ClusterImplConfig{cluster, round_robin(), "service"}); },
      [=] { return make_lb_config(ClusterImplConfig{cluster, round_robin(), "", 2}); },
      [=] {
        return make_lb_config(
            ClusterImplConfig{cluster, round_robin(), "", 1024, ClusterName("aggregate")});
      },
      [=] {
        ClusterImplConfig config{cluster, round_robin()};
        config.load_reporting = LoadReporting{};
        return make_lb_config(config);
      },
      [=] {
        ClusterImplConfig config{cluster, round_robin()};
        config.load_reporting = LoadReporting{.metrics = {.cpu_utilization = true}};
        return make_lb_config(config);
      },
      [=] { return make_lb_config(ClusterImplConfig{cluster, pick_first(false)}); },
      [] { return make_lb_config(OutlierDetectionConfig{round_robin()}); },
      [] { return make_lb_config(OutlierDetectionConfig{pick_first(false)}); },
      [=] { return make_lb_config(OutlierDetectionConfig{round_robin(), cluster}); },
      [=] {
        return make_lb_config(OutlierDetectionConfig{round_robin(), cluster, OutlierDetection{}});
      },
      [=] {
        OutlierDetection settings;
        settings.interval = std::chrono::seconds(1);
        return make_lb_config(OutlierDetectionConfig{round_robin(), cluster, settings});
      },
      [=] { return make_lb_config(CdsConfig{cluster}); },
      [] { return make_lb_config(CdsConfig{ClusterName("stock")}); },
      [=] {
        ClusterManagerConfig config;
        config.children[cluster] = {make_lb_config(CdsConfig{cluster}), false};
        return make_lb_config(config);
      },
      [=] {
        ClusterManagerConfig config;
        config.children[cluster] = {make_lb_config(CdsConfig{cluster}), true};
        return make_lb_config(config);
      },
      [] { return make_lb_config(CustomConfig{"nearest", "{}"}); },
      [] { return make_lb_config(CustomConfig{"nearest", "{\"k\":1}"}); },
  };
}

TEST_CASE("lb_config: equal in meaning when built alike, and only then", "[messages][lb_config]") {
  const auto all = makers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      CAPTURE(i, j);
      CHECK(same_config(all[i](), all[j]()) == (i == j));
    }
  }
}

TEST_CASE("lb_config: nothing is the same as nothing only", "[messages][lb_config]") {
  CHECK(same_config(nullptr, nullptr));
  CHECK_FALSE(same_config(nullptr, round_robin()));
  CHECK_FALSE(same_config(round_robin(), nullptr));
}

TEST_CASE("lb_config: every policy has its name", "[messages][lb_config]") {
  CHECK(policy_name(RoundRobinConfig{}) == "round_robin");
  CHECK(policy_name(PickFirstConfig{}) == "pick_first");
  CHECK(policy_name(WrrLocalityConfig{}) == "wrr_locality");
  CHECK(policy_name(WeightedTargetConfig{}) == "weighted_target");
  CHECK(policy_name(PriorityConfig{}) == "priority");
  CHECK(policy_name(OverrideHostConfig{}) == "override_host");
  CHECK(policy_name(ClusterImplConfig{}) == "cluster_impl");
  CHECK(policy_name(OutlierDetectionConfig{}) == "outlier_detection");
  CHECK(policy_name(CdsConfig{}) == "cds");
  CHECK(policy_name(ClusterManagerConfig{}) == "cluster_manager");
  CHECK(policy_name(RingHashConfig{}) == "ring_hash");
  CHECK(policy_name(LeastRequestConfig{}) == "least_request");
  const LbConfig custom = CustomConfig{"nearest", ""};
  CHECK(policy_name(custom) == "nearest");
}

}  // namespace
}  // namespace signalbox
