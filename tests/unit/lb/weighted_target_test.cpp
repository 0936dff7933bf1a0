// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/weighted_target.hpp"

#include <catch2/catch.hpp>

#include "lb/policy/wrr_locality.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

LbConfigPtr targets(const std::map<std::string, std::uint32_t>& weights) {
  WeightedTargetConfig config;
  for (const auto& [name, weight] : weights) {
    config.targets[ChildName(name)] = {
        weight, make_lb_config(RoundRobinConfig{}), LocalityName{"", name, ""}};
  }
  return make_lb_config(std::move(config));
}

EndpointsPtr endpoints_of(XdsWorld& world, const std::string& priority) {
  world.eds("c", {priority});
  const auto config = world.config();
  return std::get<LeafEndpoints>((*config->clusters.at(ClusterName("c")))->children).endpoints;
}

/// How often each answer comes, over `picks` seeds.
std::map<std::string, int> answers(const PolicyHarness& policy, std::uint64_t picks) {
  std::map<std::string, int> counts;
  for (std::uint64_t seed = 0; seed < picks; ++seed)
    ++counts[policy.pick("", seed)];
  return counts;
}

}  // namespace

TEST_CASE("weighted_target: shares calls by weight among those that are READY",
          "[lb][weighted_target]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({{"x", 1}, {"y", 3}, {"z", 6}}));
  CHECK(policy.published()->state == kConnecting);
  policy.child("x", kReady);
  policy.child("y", kReady);
  policy.step(RebuildDue{});

  const auto two = answers(policy, 10000);
  CHECK(two.size() == 2);
  CHECK(two.at("fail UNAVAILABLE: x READY") == Approx(2500).margin(150));
  CHECK(two.at("fail UNAVAILABLE: y READY") == Approx(7500).margin(150));

  policy.child("z", kReady);
  policy.step(RebuildDue{});
  CHECK(answers(policy, 10000).at("fail UNAVAILABLE: z READY") == Approx(6000).margin(150));

  SECTION("weights change with the configuration, at once") {
    policy.update(targets({{"x", 1}, {"y", 3}, {"z", 0}}));
    CHECK(answers(policy, 1000).size() == 2);
  }
  SECTION("a target that goes is stopped, and gets no more calls") {
    const Texts done = policy.update(targets({{"x", 1}}));
    CHECK(done == Texts{"stop y", "stop z", "publish READY"});
    CHECK(answers(policy, 100).size() == 1);
  }
}

TEST_CASE("weighted_target: is as well as its best child", "[lb][weighted_target]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({{"x", 1}, {"y", 1}}));
  policy.child("x", kFailure);
  CHECK(policy.pick() == "queue");
  CHECK(policy.child("y", kFailure) == Texts{"publish TRANSIENT_FAILURE"});
  CHECK(answers(policy, 100).size() == 2);
  CHECK(policy.step(RebuildDue{}).empty());
  CHECK(policy.child("x", kConnecting) == Texts{"rebuild-soon"});
  CHECK(policy.published()->state == kFailure);
  CHECK(policy.child("x", kReady) == Texts{"publish READY"});
  CHECK(answers(policy, 100).size() == 1);
}

TEST_CASE("weighted_target: wakes a child that went IDLE", "[lb][weighted_target]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({{"x", 1}}));
  policy.child("x", kReady);
  CHECK(policy.child("x", kIdle) == Texts{"exit-idle x", "publish IDLE"});
}

TEST_CASE("weighted_target: without targets fails", "[lb][weighted_target][A37-25]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({}));
  CHECK(policy.published()->state == kFailure);
  CHECK(policy.pick() == "fail UNAVAILABLE: there is no locality");
}

TEST_CASE("weighted_target: only the locality that changed is told", "[lb][weighted_target]") {
  XdsWorld world;
  PolicyHarness policy{make_weighted_target()};
  const auto config = targets({{"x", 1}, {"y", 1}});
  policy.update(config, nullptr, endpoints_of(world, "x:a y:b"));
  const Texts done = policy.update(config, nullptr, endpoints_of(world, "x:a y:b,c"));
  CHECK(done == Texts{"update y"});
  CHECK(policy.applied("x", 1).empty());
  CHECK(policy.applied("y", 2) == Texts{"applied 2"});
}

TEST_CASE("wrr_locality: makes one target of each locality", "[lb][wrr_locality]") {
  XdsWorld world;
  PolicyHarness policy{make_wrr_locality()};
  const auto child = make_lb_config(RoundRobinConfig{});
  policy.update(make_lb_config(WrrLocalityConfig{child}), nullptr, endpoints_of(world, "x:a y:b"));
  const auto& start = std::get<StartChild>(policy.effects().front());
  const auto& made = std::get<WeightedTargetConfig>(*start.update.config);
  REQUIRE(made.targets.size() == 2);
  const auto& target = made.targets.at(ChildName(to_string(LocalityName{"", "x", ""})));
  CHECK(target.weight == 1);
  CHECK(target.config == child);
  CHECK(target.locality.zone == "x");
}
