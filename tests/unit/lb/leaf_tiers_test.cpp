// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/leaf_tiers.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/health/host_count.hpp"
#include "lb/tree/leaf_tiers_picker.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

constexpr auto kHealthyHosts = Tier::Hosts::kHealthy;
constexpr auto kDegradedHosts = Tier::Hosts::kDegraded;
constexpr auto kAllHosts = Tier::Hosts::kAll;

/// leaf_tiers over one cluster, written as the texts of XdsWorld. By default priorities are named
/// p0, p1, …
struct Fixture {
  XdsWorld world;
  PolicyHarness policy{make_leaf_tiers()};
  TierSet tiers;
  ClusterExtras extras;
  bool ignore_reresolution_requests = true;
  LbConfigPtr lb_policy = make_lb_config(RoundRobinConfig{});

  Texts update(const XdsWorld::Priorities& priorities, std::vector<std::string> names = {}) {
    world.eds("c", priorities, default_lb_policy(), extras);
    const auto config = world.config();
    const auto& leaf = std::get<LeafEndpoints>((*config->clusters.at(ClusterName("c")))->children);
    LeafTiersConfig own;
    own.cluster = ClusterName("c");
    own.child = lb_policy;
    for (std::size_t at = 0; at < priorities.size(); ++at)
      own.priorities.emplace_back(at < names.size() ? names[at] : absl::StrCat("p", at));
    own.tiers = std::make_shared<const TierSet>(tiers);
    own.ignore_reresolution_requests = ignore_reresolution_requests;
    return policy.update(make_lb_config(own), nullptr, leaf.endpoints);
  }

  Texts say(const std::string& child, ConnectivityState state, HostReportPtr hosts = nullptr) {
    const auto status =
        state == kFailure ? absl::UnavailableError(child + " failed") : absl::OkStatus();
    return policy.step(ChildStateChanged{
        ChildName(child), state, status, named_picker(child), policy.generation(), hosts});
  }

  std::string pick(std::optional<Tier> tier) const {
    PickArgs args;
    args.tier = tier;
    return to_text(policy.published()->picker->pick(args));
  }

  /// The host report, priority by priority: "1+0/2" is one healthy and no degraded host of two.
  std::string report() const {
    const HostReportPtr hosts = policy.published()->hosts;
    if (hosts == nullptr) return "none";
    std::string text;
    for (const PriorityHosts& at : hosts->priorities)
      absl::StrAppend(&text,
                      text.empty() ? "" : " ",
                      at.healthy.hosts,
                      "+",
                      at.degraded.hosts,
                      "/",
                      at.total.hosts);
    return text;
  }

  /// The endpoints in the last configuration of the child.
  EndpointsPtr given(const std::string& child) const {
    EndpointsPtr last;
    for (const LbEffect& effect : policy.effects()) {
      const auto* start = std::get_if<StartChild>(&effect);
      if (start != nullptr && start->child == ChildName(child)) last = start->update.endpoints;
      const auto* sent = std::get_if<UpdateChild>(&effect);
      if (sent != nullptr && sent->child == ChildName(child)) last = sent->update.endpoints;
    }
    return last;
  }

  std::string addresses(const std::string& child) const {
    std::string text;
    for (const LocalityPtr& locality : given(child)->priorities.front().localities) {
      for (const Endpoint& endpoint : locality->endpoints)
        absl::StrAppend(&text, text.empty() ? "" : " ", endpoint.addresses.front().str());
    }
    return text;
  }
};

HostReportPtr fit(std::uint64_t healthy, std::uint64_t total) {
  return fit_of({healthy, healthy}, {total, total});
}

}  // namespace

TEST_CASE("leaf_tiers: without a tier it connects nobody, and says what EDS says",
          "[lb][leaf_tiers][ENV-25]") {
  Fixture fixture;
  CHECK(fixture.update({"x:a,b?,c-", "", "y:d,e!"}) == Texts{"publish CONNECTING", "applied 1"});
  CHECK(fixture.report() == "1+1/3 0+0/0 1+0/1");  // DRAINING ones do not count (ENV-28).
  CHECK(fixture.policy.published()->state == kConnecting);
  CHECK(fixture.pick(Tier{0, kHealthyHosts}) == "queue");
}

TEST_CASE("leaf_tiers: a tier that is wanted runs, each with its own endpoints",
          "[lb][leaf_tiers][ENV-4][ENV-25]") {
  Fixture fixture;
  fixture.tiers = {{0, kHealthyHosts},
                   {0, kDegradedHosts},
                   {1, kHealthyHosts},
                   {1, kAllHosts},
                   {7, kHealthyHosts}};
  const Texts effects = fixture.update({"x:a,b?,c- y:d", "y:e,f!,g-,h?"});
  CHECK(effects == Texts{"start p0",
                         "start p0-degraded",
                         "start p1",
                         "start p1-all",
                         "timer answers 10s",
                         "publish CONNECTING"});
  CHECK(fixture.addresses("p0") == "a d");
  CHECK(fixture.addresses("p0-degraded") == "b");
  CHECK(fixture.addresses("p1") == "e f");
  // In panic, calls go to endpoints of any health except DRAINING. The child gets all of these
  // marked as UNHEALTHY.
  CHECK(fixture.addresses("p1-all") == "e h g");
  for (const LocalityPtr& locality : fixture.given("p1-all")->priorities.front().localities) {
    for (const Endpoint& endpoint : locality->endpoints)
      CHECK(endpoint.health == HealthStatus::kUnhealthy);
  }
  for (const char* child : {"p0", "p0-degraded", "p1", "p1-all"})
    fixture.policy.applied(child);
  fixture.say("p1", kReady);
  CHECK(fixture.pick(Tier{1, kHealthyHosts}) == "fail UNAVAILABLE: p1");
  CHECK(fixture.pick(Tier{0, kHealthyHosts}) == "queue");
  CHECK(fixture.policy.published()->state == kReady);
  WHEN("the same is said again") {
    CHECK(fixture.update({"x:a,b?,c- y:d", "y:e,f!,g-,h?"}) == Texts{"applied 2"});
  }
  WHEN("another host of the panicking priority comes") {
    fixture.update({"x:a,b?,c- y:d", "y:e,f!,g-,h?,i-"});
    CHECK(fixture.addresses("p1-all") == "e h g i");
  }
}

TEST_CASE("leaf_tiers: with fail_traffic_on_panic calls to a tier in panic fail",
          "[lb][leaf_tiers][ENV-38]") {
  Fixture fixture;
  fixture.tiers = {{0, kAllHosts}, {1, kHealthyHosts}};
  fixture.lb_policy =
      make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{}), std::nullopt, true});
  CHECK(fixture.update({"x:a,b-", "x:c"}) ==
        Texts{"start p1", "timer answers 10s", "publish CONNECTING"});
  fixture.policy.applied("p1");
  fixture.say("p1", kReady);
  CHECK(
      fixture.pick(Tier{0, kAllHosts}) ==
      "fail UNAVAILABLE: too few endpoints are healthy (panic), and fail_traffic_on_panic is set");
  CHECK(fixture.pick(Tier{1, kHealthyHosts}) == "fail UNAVAILABLE: p1");
  CHECK(fixture.policy.published()->state == kReady);
  const PickerPtr picker = fixture.policy.published()->picker;
  fixture.say("p1", kReady);
  WHEN("no other tier is wanted") {
    fixture.tiers = {{0, kAllHosts}};
    fixture.update({"x:a,b-", "x:c"});
    CHECK(fixture.policy.published()->state == kFailure);
    CHECK(fixture.policy.published()->status.message() ==
          "too few endpoints are healthy (panic), and fail_traffic_on_panic is set");
  }
  WHEN("the field is unset") {
    fixture.lb_policy = make_lb_config(RoundRobinConfig{});
    const Texts effects = fixture.update({"x:a,b-", "x:c"});
    CHECK(std::ranges::count(effects, "start p0-all") == 1);
    CHECK(fixture.pick(Tier{0, kAllHosts}) == "queue");
  }
}

TEST_CASE("leaf_tiers: with fail_traffic_on_panic no call fails for a tier that is not in panic",
          "[lb][leaf_tiers][ENV-38]") {
  Fixture fixture;
  fixture.tiers = {{1, kHealthyHosts}};
  fixture.lb_policy =
      make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{}), std::nullopt, true});
  fixture.update({"x:a-", "x:c"});
  fixture.policy.applied("p1");
  fixture.say("p1", kReady);
  // The endpoints that the call was drawn for are gone. It waits until it is drawn again.
  CHECK(fixture.pick(Tier{0, kHealthyHosts}) == "queue");
  CHECK(fixture.pick(std::nullopt) == "fail UNAVAILABLE: p1");
}

TEST_CASE("leaf_tiers: a call whose tier is not there goes to the nearest",
          "[lb][leaf_tiers][ENV-4]") {
  Fixture fixture;
  fixture.tiers = {{0, kHealthyHosts}, {1, kDegradedHosts}, {2, kHealthyHosts}};
  fixture.update({"x:a", "x:b?", "x:c"});
  for (const char* child : {"p0", "p1-degraded", "p2"}) {
    fixture.policy.applied(child);
    fixture.say(child, kReady);
  }
  CHECK(fixture.pick(Tier{1, kDegradedHosts}) == "fail UNAVAILABLE: p1-degraded");
  CHECK(fixture.pick(Tier{1, kHealthyHosts}) == "fail UNAVAILABLE: p1-degraded");
  // This tier has endpoints, but is not running. It may start soon, so the pick waits.
  CHECK(fixture.pick(Tier{1, kAllHosts}) == "queue");
  CHECK(fixture.pick(Tier{9, kHealthyHosts}) == "fail UNAVAILABLE: p0");
  CHECK(fixture.pick(std::nullopt) == "fail UNAVAILABLE: p0");
  CHECK(fixture.pick(Tier{2, kHealthyHosts}) == "fail UNAVAILABLE: p2");
}

TEST_CASE("leaf_tiers: the report is what children say, by priority, and EDS of the others",
          "[lb][leaf_tiers][ENV-24][ENV-25]") {
  Fixture fixture;
  fixture.tiers = {{0, kHealthyHosts}, {0, kDegradedHosts}};
  fixture.update({"x:a,b,c?,d?,e-", "x:f"});
  fixture.policy.applied("p0");
  fixture.policy.applied("p0-degraded");
  CHECK(fixture.report() == "2+2/5 1+0/1");
  fixture.say("p0", kReady, fit(1, 2));
  CHECK(fixture.report() == "1+2/5 1+0/1");
  fixture.say("p0-degraded", kReady, fit(0, 2));
  CHECK(fixture.report() == "1+0/5 1+0/1");
  // If a child publishes no host report, all of its endpoints count as fit, unless it has failed.
  fixture.say("p0", kReady);
  CHECK(fixture.report() == "2+0/5 1+0/1");
  fixture.say("p0", kFailure);
  CHECK(fixture.report() == "0+0/5 1+0/1");
}

TEST_CASE("leaf_tiers: a child that uses a subset of the endpoints stands for all of them",
          "[lb][leaf_tiers][ENV-7][A68]") {
  Fixture fixture;
  fixture.tiers = {{0, kHealthyHosts}, {0, kDegradedHosts}};
  fixture.update({"x:a,b,c,d,e,f,g?,h?,i-"});
  fixture.policy.applied("p0");
  fixture.policy.applied("p0-degraded");
  fixture.say("p0", kReady, fit(2, 2));  // random_subsetting counts its subset.
  CHECK(fixture.report() == "6+2/9");
  fixture.say("p0", kReady, fit(1, 2));
  CHECK(fixture.report() == "3+2/9");
  fixture.say("p0-degraded", kReady, fit(0, 1));
  CHECK(fixture.report() == "3+0/9");
  fixture.say("p0", kFailure, fit(0, 2));
  CHECK(fixture.report() == "0+0/9");
  fixture.say("p0", kReady, fit(3, 4));  // Rounded down, as health is (ENV-7).
  CHECK(fixture.report() == "4+0/9");
  fixture.say("p0", kReady, fit(0, 0));  // The child has no endpoints yet.
  CHECK(fixture.report() == "0+0/9");
}

TEST_CASE("leaf_tiers: what EDS says of scores goes up", "[lb][leaf_tiers][ENV-7][ENV-9]") {
  Fixture fixture;
  fixture.extras.overprovisioning_percent = 120;
  fixture.extras.weighted_priority_health = true;
  fixture.update({"x:a=3,b=4-"});
  const HostReportPtr hosts = fixture.policy.published()->hosts;
  CHECK(hosts->overprovisioning_percent == 120);
  CHECK(hosts->weighted);
  CHECK(hosts->priorities.front().healthy.weight == 3);
  CHECK(hosts->priorities.front().total.weight == 7);
}

TEST_CASE("leaf_tiers: a tier that is not wanted any more is kept for a while",
          "[lb][leaf_tiers][ENV-25]") {
  Fixture fixture;
  fixture.tiers = {{0, kHealthyHosts}, {1, kHealthyHosts}};
  fixture.update({"x:a", "x:b"});
  fixture.policy.applied("p0");
  fixture.policy.applied("p1");
  fixture.say("p1", kReady);
  fixture.tiers = {{0, kHealthyHosts}};
  CHECK(fixture.update({"x:a", "x:b"}) ==
        Texts{"timer deactivation/p1 900s", "publish CONNECTING", "applied 2"});
  SECTION("and stopped") {
    CHECK(fixture.policy.advance(15min) == Texts{"stop p1", "publish CONNECTING"});
    CHECK(fixture.pick(Tier{1, kHealthyHosts}) == "queue");
  }
  SECTION("unless it is wanted again") {
    fixture.tiers = {{0, kHealthyHosts}, {1, kHealthyHosts}};
    CHECK(fixture.update({"x:a", "x:b"}) ==
          Texts{"cancel deactivation/p1", "publish READY", "applied 3"});
    CHECK(fixture.policy.advance(15min).empty());
  }
  SECTION("its report counts as long as it runs") {
    fixture.say("p1", kFailure, fit(0, 1));
    CHECK(fixture.report() == "1+0/1 0+0/1");
    fixture.policy.advance(15min);
    CHECK(fixture.report() == "1+0/1 1+0/1");
  }
  SECTION("it hears of its endpoints") {
    CHECK(fixture.update({"x:a", "x:b,c"}) == Texts{"update p1", "timer answers 10s"});
    CHECK(fixture.addresses("p1") == "b c");
  }
  SECTION("and does not leave IDLE with the others") {
    CHECK(fixture.policy.step(IdleExitRequested{}) == Texts{"exit-idle p0"});
  }
  SECTION("and stopped at once, where its endpoints are gone") {
    CHECK(fixture.update({"x:a"}) ==
          Texts{"cancel deactivation/p1", "stop p1", "publish CONNECTING", "applied 3"});
  }
}

TEST_CASE("leaf_tiers: while a configuration is half applied report and tiers stay",
          "[lb][leaf_tiers]") {
  Fixture fixture;
  fixture.tiers = {{0, kHealthyHosts}, {1, kHealthyHosts}};
  fixture.update({"x:a", "y:b"});
  fixture.policy.applied("p0");
  fixture.policy.applied("p1");
  fixture.say("p0", kReady, fit(1, 1));
  fixture.say("p1", kReady, fit(1, 1));
  // The priorities change places, and p1 gets more endpoints.
  fixture.update({"y:b,c,d", "x:a"}, {"p1", "p0"});
  fixture.say("p1", kReady, fit(3, 3));
  CHECK(fixture.report() == "1+0/1 1+0/1");
  CHECK(fixture.pick(Tier{0, kHealthyHosts}) == "fail UNAVAILABLE: p0");
  SECTION("until all have answered") {
    fixture.policy.applied("p1");
    CHECK(fixture.report() == "3+0/3 1+0/1");
    CHECK(fixture.pick(Tier{0, kHealthyHosts}) == "fail UNAVAILABLE: p1");
  }
  SECTION("or had their time") {
    fixture.policy.advance(10s);
    CHECK(fixture.report() == "3+0/3 1+0/1");
  }
  SECTION("a child that dies holds nobody up") {
    fixture.policy.step(ChildDied{ChildName("p1")});
    CHECK(fixture.report() == "3+0/3 1+0/1");
  }
}

TEST_CASE("leaf_tiers: nobody waits for the answer of a tier whose endpoints are gone",
          "[lb][leaf_tiers]") {
  Fixture fixture;
  fixture.tiers = {{0, kHealthyHosts}, {1, kHealthyHosts}};
  fixture.update({"x:a", "x:b"});
  fixture.policy.applied("p0");
  fixture.say("p0", kReady, fit(1, 1));
  const Texts effects = fixture.update({"x:a"});  // p1 has not answered.
  CHECK(std::ranges::count(effects, "stop p1") == 1);
  CHECK(effects.back() == "applied 2");
  CHECK(fixture.report() == "1+0/1");
}

TEST_CASE("leaf_tiers: its state is the best of the tiers that are wanted", "[lb][leaf_tiers]") {
  Fixture fixture;
  fixture.tiers = {{0, kHealthyHosts}, {1, kHealthyHosts}};
  fixture.update({"x:a", "x:b"});
  fixture.policy.applied("p0");
  fixture.policy.applied("p1");
  const auto say = [&](ConnectivityState first, ConnectivityState second) {
    fixture.say("p0", first);
    fixture.say("p1", second);
    return fixture.policy.published()->state;
  };
  CHECK(say(kReady, kFailure) == kReady);
  CHECK(say(kConnecting, kIdle) == kConnecting);
  CHECK(say(kIdle, kIdle) == kIdle);
  CHECK(say(kFailure, kFailure) == kFailure);
  CHECK(fixture.policy.published()->status.message() == "priority 1: p1 failed");
  CHECK(fixture.policy.step(IdleExitRequested{}) == Texts{"exit-idle p0", "exit-idle p1"});
}

TEST_CASE("leaf_tiers: without endpoints calls fail", "[lb][leaf_tiers][ENV-6]") {
  Fixture fixture;
  fixture.tiers = {{0, kHealthyHosts}};
  fixture.update({""});
  CHECK(fixture.pick(Tier{0, kHealthyHosts}) == "fail UNAVAILABLE: there is no endpoint");
  CHECK(fixture.policy.published()->state == kFailure);
  CHECK(fixture.report() == "0+0/0");
}

TEST_CASE("leaf_tiers: a re-resolution request goes on upwards where the leaf has a name",
          "[lb][leaf_tiers][A37-33]") {
  const auto row = GENERATE(values<std::pair<bool, Texts>>({{true, {}}, {false, {"re-resolve"}}}));
  Fixture fixture;
  fixture.ignore_reresolution_requests = row.first;
  fixture.tiers = {{0, kHealthyHosts}};
  fixture.update({"x:a"});
  CHECK(fixture.policy.step(ChildAskedReresolution{ChildName("p0")}) == row.second);
}

TEST_CASE("leaf_tiers: of near tiers one that is started is preferred", "[lb][leaf_tiers][ENV-4]") {
  const PickerPtr picker = make_leaf_tiers_picker({{named_picker("a"), false},
                                                   {named_picker("b"), true},
                                                   {},
                                                   {named_picker("c"), true},
                                                   {},
                                                   {}});
  const auto pick = [&](std::optional<Tier> tier) {
    PickArgs args;
    args.tier = tier;
    return to_text(picker->pick(args));
  };
  CHECK(pick(Tier{0, kHealthyHosts}) == "fail UNAVAILABLE: a");
  CHECK(pick(Tier{0, kAllHosts}) == "fail UNAVAILABLE: b");
  CHECK(pick(Tier{1, kAllHosts}) == "fail UNAVAILABLE: c");
  CHECK(pick(std::nullopt) == "fail UNAVAILABLE: b");
}

TEST_CASE("leaf_tiers: an explained pick tells the tier, and why another one", "[lb][leaf_tiers]") {
  struct Told final : PickTrace {
    std::vector<PickStep> steps;

    void tell(PickStep step) override { steps.push_back(std::move(step)); }
  };

  const PickerPtr picker = make_leaf_tiers_picker(
      {{named_picker("a"), true}, {}, {}, {}, {named_picker("b"), false}, {}});
  const auto explain = [&](std::optional<Tier> tier) {
    Told told;
    PickArgs args;
    args.tier = tier;
    picker->explain(args, told);
    CHECK(told.steps.front().part == "leaf_tiers");
    CHECK(told.steps.front().source == "EDS");
    return told.steps.front().decision + ": " + told.steps.front().reason;
  };
  CHECK(explain(Tier{0, kHealthyHosts}) == "priority 0: as tiered chose");
  CHECK(explain(Tier{1, kDegradedHosts}) ==
        "priority 1, degraded endpoints: as tiered chose; it is not started yet, the call waits");
  CHECK(explain(Tier{0, kAllHosts}) ==
        "priority 0: priority 0, all endpoints (panic) has no endpoints: the nearest");
  CHECK(explain(std::nullopt) == "priority 0: the call is for no tier: the first");
}
