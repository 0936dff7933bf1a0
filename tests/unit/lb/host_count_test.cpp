// SPDX-License-Identifier: Apache-2.0
//
// Host reports of policies (ENV-24): leaf policies make them, other policies add them up or pass
// them on.
#include "lb/health/host_count.hpp"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/policy_registry.hpp"
#include "lb/tree/weighted_target.hpp"
#include "lb/tree/wrr_locality.hpp"
#include "tests/support/child_policies.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/xds_world.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb::host_count_test {
namespace {

std::string text_of(const HostReportPtr& report) {
  if (report == nullptr) return "none";
  REQUIRE(report->priorities.size() == 1);
  const PriorityHosts& at = report->priorities.front();
  CHECK(at.degraded == HostTally{});
  std::string text = absl::StrCat(at.healthy.hosts, "/", at.total.hosts);
  if (at.total.weight != at.total.hosts)
    absl::StrAppend(&text, " by weight ", at.healthy.weight, "/", at.total.weight);
  return text;
}

struct Leaf {
  explicit Leaf(const LbConfigPtr& own, PolicyOptions options = {})
      : config(own), harness(make(own, std::move(options))) {}

  LbConfigPtr config;
  LeafHarness harness;

  std::string said() {
    harness.step(RebuildDue{});
    return text_of(harness.published.back().hosts);
  }

  void update(const std::vector<std::string>& endpoints) { harness.update(endpoints, config); }

 private:
  static std::unique_ptr<Policy> make(const LbConfigPtr& config, PolicyOptions options) {
    PolicyContext context;
    context.options = std::move(options);
    context.asks = std::make_shared<const DeafTarget>();
    return make_policy(*config, std::move(context));
  }
};

const LbConfigPtr kRoundRobin = make_lb_config(RoundRobinConfig{});

}  // namespace

TEST_CASE("host_count: policies of many endpoints say who is fit", "[lb][host_count][ENV-24]") {
  const LbConfigPtr config = GENERATE(as<LbConfigPtr>{},
                                      kRoundRobin,
                                      make_lb_config(LeastRequestConfig{}),
                                      make_lb_config(RingHashConfig{}));
  Leaf leaf(config);
  leaf.update({"a", "b", "c,d"});
  CHECK(leaf.said() == "3/3");  // No host was tried yet, so all hosts count as fit.
  for (const char* address : {"a", "b", "c", "d"}) {
    leaf.harness.step(PickAsked{{PickAsk::Kind::kConnect, Address(address)}});
    leaf.harness.idle(address);
    leaf.harness.connecting(address);
  }
  CHECK(leaf.said() == "3/3");
  SECTION("READY ones are, those that fail are not until they are READY") {
    leaf.harness.ready("a");
    leaf.harness.fail("b");
    CHECK(leaf.said() == "2/3");
    leaf.harness.idle("b");
    leaf.harness.connecting("b");
    CHECK(leaf.said() == "2/3");
    leaf.harness.ready("b");
    CHECK(leaf.said() == "3/3");
  }
  SECTION("of one with two addresses both have to fail") {
    leaf.harness.fail("c");
    CHECK(leaf.said() == "3/3");
    leaf.harness.fail("d");
    CHECK(leaf.said() == "2/3");
  }
  SECTION("those that a judge finds unfit are not") {
    leaf.harness.ready("a");
    leaf.harness.unhealthy("a");
    CHECK(leaf.said() == "2/3");
    leaf.harness.ready("a");
    CHECK(leaf.said() == "3/3");
  }
  SECTION("who leaves counts no more, and who comes does") {
    leaf.harness.fail("b");
    leaf.update({"a", "c,d", "e", "f"});
    CHECK(leaf.said() == "4/4");
  }
}

TEST_CASE("host_count: who cannot be reached is fit where that does not matter",
          "[lb][host_count][ENV-24]") {
  const LbConfigPtr config =
      GENERATE(as<LbConfigPtr>{}, kRoundRobin, make_lb_config(PickFirstConfig{}));
  PolicyOptions options;
  options.unreachable_is_unhealthy = false;
  Leaf leaf(config, options);
  leaf.update({"a", "b"});
  for (const char* address : {"a", "b"}) {
    leaf.harness.idle(address);
    leaf.harness.connecting(address);
    leaf.harness.fail(address);
  }
  leaf.harness.fail("b");
  CHECK(leaf.harness.state() == ConnectivityState::kTransientFailure);
  CHECK(leaf.said() == "2/2");
}

TEST_CASE("host_count: a judge's word counts without a connection", "[lb][host_count][ENV-24]") {
  PolicyOptions options;
  options.unreachable_is_unhealthy = false;
  Leaf leaf(kRoundRobin, options);
  leaf.update({"a", "b"});
  SubchannelStateChanged told{Address("a"), ConnectivityState::kConnecting, false, {}, nullptr};
  leaf.harness.step(told);
  CHECK(leaf.said() == "1/2");
}

TEST_CASE("host_count: pick_first knows of the one in use, or that all have failed",
          "[lb][host_count][ENV-24]") {
  Leaf leaf(make_lb_config(PickFirstConfig{}));
  leaf.update({"a", "b", "c"});
  CHECK(leaf.said() == "3/3");
  for (const char* address : {"a", "b", "c"}) {
    leaf.harness.idle(address);
    leaf.harness.connecting(address);
  }
  SECTION("a judge finds it unfit: it is used on, and does not count") {
    leaf.harness.ready("a");
    const PickerPtr picker = leaf.harness.published.back().picker;
    leaf.harness.unhealthy("a");
    CHECK(leaf.said() == "2/3");
    CHECK(leaf.harness.state() == ConnectivityState::kReady);
  }
  SECTION("all have failed") {
    for (const char* address : {"a", "b", "c"})
      leaf.harness.fail(address);
    for (const char* address : {"a", "b", "c"})
      leaf.harness.fail(address);
    REQUIRE(leaf.harness.state() == ConnectivityState::kTransientFailure);
    CHECK(leaf.said() == "0/3");
    leaf.harness.ready("b");
    CHECK(leaf.said() == "3/3");
  }
}

TEST_CASE("host_count: what is said before Applied is of that configuration's endpoints",
          "[lb][host_count]") {
  Leaf leaf(kRoundRobin);
  leaf.update({"a"});
  leaf.harness.ready("a");
  leaf.harness.step(RebuildDue{});
  leaf.update({"a", "b"});
  CHECK(text_of(leaf.harness.published.back().hosts) == "1/1");
  const LbEffects effects = leaf.harness.connecting("b");
  REQUIRE(count_of<ReportApplied>(effects) == 1);
  bool is_said = false;
  for (const LbEffect& effect : effects) {
    if (const auto* publish = std::get_if<Publish>(&effect))
      is_said |= text_of(publish->hosts) == "2/2";
    if (std::holds_alternative<ReportApplied>(effect)) CHECK(is_said);
  }
}

TEST_CASE("host_count: a change of numbers alone is said once a burst, and builds no picker",
          "[lb][host_count]") {
  Leaf leaf(kRoundRobin);
  leaf.update({"a", "b", "c"});
  leaf.harness.connecting("b");
  leaf.harness.connecting("c");
  leaf.harness.ready("a");
  leaf.harness.step(RebuildDue{});
  const PickerPtr picker = leaf.harness.published.back().picker;
  const std::size_t published = leaf.harness.published.size();
  leaf.harness.fail("b");
  leaf.harness.fail("c");
  CHECK(leaf.harness.published.size() == published);
  CHECK(leaf.said() == "1/3");
  CHECK(leaf.harness.published.size() == published + 1);
  CHECK(leaf.harness.published.back().picker == picker);
}

TEST_CASE("host_count: who is listed as UNHEALTHY is used whatever judges find",
          "[lb][host_count][ENV-17]") {
  LeafHarness harness(make_policy(*kRoundRobin, {}));
  Endpoints slice;
  Locality locality;
  locality.endpoints.push_back({{Address("a")}, HealthStatus::kUnhealthy});
  slice.priorities.push_back({{std::make_shared<const Locality>(std::move(locality))}});
  harness.step(
      ConfigUpdated{1, kRoundRobin, nullptr, std::make_shared<const Endpoints>(std::move(slice))});
  harness.unhealthy("a");
  CHECK(harness.pick() == "a");
}

TEST_CASE("host_count: weights are counted beside numbers", "[lb][host_count][ENV-9]") {
  test::XdsWorld world;
  world.eds("c", {"x:a=3,b=5"});
  const auto config = world.config();
  const auto& leaf = std::get<LeafEndpoints>((*config->clusters.at(ClusterName("c")))->children);
  LeafHarness harness(make_policy(*kRoundRobin, {}));
  harness.step(ConfigUpdated{1, kRoundRobin, nullptr, leaf.endpoints});
  CHECK(text_of(harness.published.back().hosts) == "2/2 by weight 8/8");
  harness.fail("b");
  harness.step(RebuildDue{});
  CHECK(text_of(harness.published.back().hosts) == "1/2 by weight 3/8");
  // A change of weight is reported even if no state changes.
  world.eds("c", {"x:a=4,b=5"});
  const auto next = world.config();
  const auto& more = std::get<LeafEndpoints>((*next->clusters.at(ClusterName("c")))->children);
  harness.step(ConfigUpdated{2, kRoundRobin, nullptr, more.endpoints});
  harness.step(RebuildDue{});
  CHECK(text_of(harness.published.back().hosts) == "1/2 by weight 4/9");
}

// --- policies above leaf policies ---

namespace {

LbConfigPtr targets(const std::vector<std::string>& localities) {
  WeightedTargetConfig config;
  for (const std::string& zone : localities)
    config.targets[ChildName(zone)] = {1, kRoundRobin, LocalityName{"", zone, ""}};
  return make_lb_config(std::move(config));
}

HostReportPtr fit(std::uint64_t healthy, std::uint64_t total) {
  return fit_of({healthy, healthy}, {total, total});
}

ChildStateChanged said(const std::string& child, ConnectivityState state, HostReportPtr hosts) {
  static const PickerPtr picker = test::named_picker("it");
  return {ChildName(child), state, {}, picker, 1, std::move(hosts)};
}

}  // namespace

TEST_CASE("host_count: weighted_target sums its children up", "[lb][host_count][weighted_target]") {
  using namespace test;
  XdsWorld world;
  world.eds("c", {"x:a,b y:c"});
  const auto config = world.config();
  const auto& leaf = std::get<LeafEndpoints>((*config->clusters.at(ClusterName("c")))->children);
  PolicyHarness policy(make_weighted_target());
  policy.update(targets({"x", "y"}), nullptr, leaf.endpoints);
  CHECK(text_of(policy.published()->hosts) == "3/3");
  policy.step(said("x", kReady, fit(1, 2)));
  policy.step(RebuildDue{});
  CHECK(text_of(policy.published()->hosts) == "2/3");
  SECTION("a change of numbers alone is one Publish a burst, with the same picker") {
    policy.step(said("y", kReady, fit(1, 1)));
    policy.step(RebuildDue{});
    const PickerPtr picker = policy.published()->picker;
    CHECK(policy.step(said("x", kReady, fit(2, 2))) == std::vector<std::string>{"rebuild-soon"});
    CHECK(policy.step(said("x", kReady, fit(0, 2))).empty());
    CHECK(policy.step(RebuildDue{}) == std::vector<std::string>{"publish READY"});
    CHECK(text_of(policy.published()->hosts) == "1/3");
    CHECK(policy.published()->picker == picker);
    CHECK(policy.step(said("x", kReady, fit(0, 2))).empty());
  }
  SECTION("what changed is said before Applied") {
    policy.applied("x");
    policy.step(said("y", kReady, fit(0, 1)));
    CHECK(policy.applied("y") == std::vector<std::string>{"publish READY", "applied 1"});
    CHECK(text_of(policy.published()->hosts) == "1/3");
  }
  SECTION("a child that says nothing has all of its own fit, until it fails") {
    policy.step(said("y", kConnecting, nullptr));
    policy.step(RebuildDue{});
    CHECK(text_of(policy.published()->hosts) == "2/3");
    policy.step(ChildStateChanged{
        ChildName("y"), kFailure, absl::UnavailableError("no"), named_picker("y"), 1, nullptr});
    policy.step(RebuildDue{});
    CHECK(text_of(policy.published()->hosts) == "1/3");
  }
}

TEST_CASE("host_count: who has one child passes on what it says",
          "[lb][host_count][pass_through]") {
  using namespace test;
  PolicyHarness policy(make_wrr_locality());
  policy.update(make_lb_config(WrrLocalityConfig{kRoundRobin}));
  policy.step(said("child", kReady, fit(1, 2)));
  CHECK(text_of(policy.published()->hosts) == "1/2");
  CHECK(policy.step(said("child", kReady, fit(2, 2))) == std::vector<std::string>{"publish READY"});
  CHECK(policy.step(said("child", kReady, fit(2, 2))).empty());
  policy.step(said("child", kReady, nullptr));
  CHECK(policy.published()->hosts == nullptr);
}

}  // namespace signalbox::lb::host_count_test
