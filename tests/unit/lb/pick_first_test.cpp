// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/pick_first.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "lb/leaf/pick_first_core.hpp"
#include "messages/invariant.hpp"
#include "tests/support/printed.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {
namespace {

using Strings = std::vector<std::string>;
constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kReady = ConnectivityState::kReady;
constexpr auto kFailed = ConnectivityState::kTransientFailure;
constexpr auto kIdle = ConnectivityState::kIdle;

const auto kAsks = std::make_shared<const DeafTarget>();

LeafHarness pick_first(bool shuffled = false, std::uint64_t seed = 1) {
  return LeafHarness(
      make_leaf(PickFirstConfig{shuffled}, PolicyContext{PolicyPath{"p"}, seed, kAsks}));
}

// A policy with these addresses. All of them were IDLE, and now the last one is READY.
LeafHarness ready_on(const Strings& addresses) {
  LeafHarness leaf = pick_first();
  leaf.update(addresses);
  for (const std::string& address : addresses)
    leaf.idle(address);
  leaf.ready(addresses.back());
  leaf.connects.clear();
  return leaf;
}

TEST_CASE("pick_first: a configuration is applied when every new address was heard of",
          "[lb][pick_first][applied]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a", "b"});
  leaf.idle("a");
  CHECK(leaf.applied == 0);
  SECTION("all of them") {
    CHECK(std::holds_alternative<ReportApplied>(leaf.idle("b").back()));
    CHECK(leaf.applied == 1);
    leaf.update({"b", "a"});
    CHECK(leaf.applied == 2);
  }
  SECTION("one that is READY will do, and is told before") {
    const LbEffects effects = leaf.ready("b");
    CHECK(leaf.state() == kReady);
    CHECK(std::holds_alternative<ReportApplied>(effects.back()));
  }
  SECTION("of several configurations, the last") {
    leaf.update({"a", "b", "c"});
    leaf.idle("b");
    CHECK(leaf.applied == 0);
    leaf.idle("c");
    CHECK(leaf.applied == 2);
  }
}

TEST_CASE("pick_first: an empty list fails, and asks for a better one", "[lb][pick_first]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a"});
  leaf.update({});
  CHECK(leaf.held.empty());
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.pick() == "fail: address list is empty");
  CHECK(leaf.reresolutions == 1);
  CHECK(leaf.applied == 2);
  leaf.update({"a"});
  leaf.ready("a");
  CHECK(leaf.pick() == "a");
}

TEST_CASE("pick_first: being asked before it is configured does nothing", "[lb][pick_first]") {
  LeafHarness leaf = pick_first();
  CHECK(leaf.step(IdleExitRequested{}).empty());
  CHECK(leaf.idle("a").empty());
}

TEST_CASE("pick_first: keeps its connection while the address is listed", "[lb][pick_first]") {
  LeafHarness leaf = ready_on({"a", "b"});
  const std::size_t published = leaf.published.size();
  leaf.update({"c", "b"});
  CHECK(leaf.held == std::set<std::string>{"b"});
  CHECK(leaf.published.size() == published);
  CHECK(leaf.applied == 2);

  leaf.update({"c"});
  CHECK(leaf.held == std::set<std::string>{"c"});
  CHECK(leaf.state() == kConnecting);
}

TEST_CASE("pick_first: an update while connecting keeps what it can", "[lb][pick_first]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a", "b"});
  leaf.idle("a");
  leaf.idle("b");
  leaf.connecting("a");
  leaf.fail("a");
  leaf.connects.clear();
  const LbEffects effects = leaf.update({"a", "b", "c"});
  CHECK(count_of<AcquireSubchannel>(effects) == 1);
  CHECK(count_of<ReleaseSubchannel>(effects) == 0);
  leaf.idle("c");
  CHECK(leaf.connects == Strings{"b"});  // a is in back-off still.
  CHECK(leaf.update({"a", "b", "c"}).size() == 1);
}

TEST_CASE("pick_first: a pick says which endpoint it chose", "[lb][pick_first][A61]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a1,a2", "b"});
  leaf.idle("a1");
  leaf.idle("b");
  leaf.ready("a2");
  const PickResult result = leaf.published.back().picker->pick({});
  const ChosenEndpoint* chosen = std::get<Complete>(result.outcome).endpoint;
  REQUIRE(chosen != nullptr);
  CHECK(chosen->endpoint->addresses == std::vector{Address("a1"), Address("a2")});
  CHECK(chosen->tracker == nullptr);

  // An update of the endpoint's data alone is published, too.
  const std::size_t published = leaf.published.size();
  leaf.update({"a2"});
  CHECK(leaf.published.size() == published + 1);
  const PickResult later = leaf.published.back().picker->pick({});
  CHECK(std::get<Complete>(later.outcome).endpoint->endpoint->addresses ==
        std::vector{Address("a2")});
}

TEST_CASE("pick_first: a change of its endpoint's locality alone is published",
          "[lb][pick_first]") {
  PolicyContext context{PolicyPath{"p"}, 1, kAsks};
  context.options.caller = {"north", "x", ""};
  LeafHarness leaf(make_leaf(PickFirstConfig{}, context));
  Locality locality{{"north", "x", ""}, 1, {{.addresses = {Address("a")}}}};
  const auto update = [&] {
    Endpoints endpoints;
    endpoints.priorities.push_back({{std::make_shared<const Locality>(locality)}});
    leaf.step(ConfigUpdated{
        ++leaf.generation, nullptr, nullptr, std::make_shared<const Endpoints>(endpoints)});
  };
  const auto chosen = [&] {
    return std::get<Complete>(leaf.published.back().picker->pick({}).outcome);
  };
  update();
  leaf.ready("a");
  CHECK(chosen().zone == CallZone::kOwn);
  const std::size_t published = leaf.published.size();
  update();
  CHECK(leaf.published.size() == published);

  locality.name.zone = "y";
  update();
  CHECK(leaf.published.size() == published + 1);
  CHECK(chosen().zone == CallZone::kOther);
  locality.weight = 7;
  update();
  CHECK(leaf.published.size() == published + 2);
  CHECK(chosen().endpoint->locality->weight == 7);
}

TEST_CASE("pick_first: a change of the host counts alone is published with the same picker",
          "[lb][pick_first]") {
  LeafHarness leaf = ready_on({"a", "b"});
  const Publish before = leaf.published.back();
  leaf.update({"a", "b", "c"});
  const Publish& after = leaf.published.back();
  CHECK(after.picker == before.picker);
  CHECK(after.generation == 2);
  CHECK(before.hosts->priorities.front().total.hosts == 2);
  CHECK(after.hosts->priorities.front().total.hosts == 3);
  // In TRANSIENT_FAILURE no endpoint is fit, and the number of endpoints counts all the same.
  LeafHarness failed = pick_first();
  failed.update({"a"});
  failed.fail("a");
  failed.update({"a", "b"});
  CHECK(failed.state() == kFailed);
  CHECK(failed.published.back().hosts->priorities.front().healthy.hosts == 0);
  CHECK(failed.published.back().hosts->priorities.front().total.hosts == 2);
}

TEST_CASE("pick_first: calls are counted by whom the subchannel map names",
          "[lb][pick_first][A50]") {
  class Silent final : public CallTracker {
    void ended(const CallEnd& /*end*/) const noexcept override {}
  };

  LeafHarness leaf = pick_first();
  leaf.update({"a"});
  SubchannelStateChanged ready;
  ready.address = Address{"a"};
  ready.state = kReady;
  ready.connection = std::make_shared<const Connection>(ready.address);
  leaf.step(ready);
  ready.tracker = std::make_shared<Silent>();
  leaf.step(ready);
  const PickResult result = leaf.published.back().picker->pick({});
  CHECK(std::get<Complete>(result.outcome).endpoint->tracker == ready.tracker);
  const std::size_t published = leaf.published.size();
  leaf.step(ready);
  CHECK(leaf.published.size() == published);
}

TEST_CASE("pick_first: duplicated addresses count once", "[lb][pick_first]") {
  LeafHarness leaf = pick_first();
  const LbEffects effects = leaf.update({"a", "a,b", "b"});
  CHECK(count_of<AcquireSubchannel>(effects) == 2);
  leaf.fail("a");
  leaf.fail("b");
  CHECK(leaf.state() == kFailed);
}

TEST_CASE("pick_first: a lost READY without its connection is a broken invariant",
          "[lb][pick_first]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a"});
  SubchannelStateChanged bad;
  bad.address = Address{"a"};
  bad.state = kReady;
  CHECK_THROWS_AS(leaf.step(bad), BrokenInvariant);
}

TEST_CASE("pick_first: shuffles by weight, unless that is switched off",
          "[lb][pick_first][A62][A113]") {
  const bool by_weight = GENERATE(true, false);
  Locality locality;
  locality.endpoints = {{{Address("light")}}, {{Address("heavy")}}};
  locality.endpoints[1].weight = 99;
  ConfigUpdated update;
  update.generation = 1;
  Endpoints slice;
  slice.priorities.push_back({{std::make_shared<const Locality>(locality)}});
  update.endpoints = std::make_shared<const Endpoints>(slice);
  int heavy = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    PolicyContext context{PolicyPath{"p"}, seed, kAsks};
    context.options.weighted_shuffling = by_weight;
    LeafHarness leaf(make_leaf(PickFirstConfig{true}, context));
    const LbEffects effects = leaf.step(update);
    if (std::get<AcquireSubchannel>(effects.front()).address == Address("heavy")) ++heavy;
  }
  CHECK(heavy > (by_weight ? 960 : 400));
  CHECK(heavy < (by_weight ? 1000 : 600));
}

TEST_CASE("pick_first: a new configuration may switch shuffling on", "[lb][pick_first][A62]") {
  LeafHarness leaf = pick_first(false, 3);
  leaf.update({"a", "b"});
  CHECK_THROWS_AS(leaf.update({"a"}, make_lb_config(RoundRobinConfig{})), BrokenInvariant);
  CHECK_NOTHROW(leaf.update({"a"}, make_lb_config(PickFirstConfig{true})));
}

// I1 of pick_first_core.hpp, and I2 for Idle and Selected, in random histories. Subchannels report
// any state at any time, even before they were acquired.
TEST_CASE("pick_first: its invariants hold in any history", "[lb][pick_first][A61][A62]") {
  const Strings all{"a", "b", "c", "d"};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    LeafHarness leaf = pick_first(true, seed);
    bool sticky = false;
    std::uint64_t step = 0;
    const auto chance = [&](std::uint64_t bound) {
      return draw_below(seed, Salt::kRouteFraction, bound, ++step);
    };
    for (int event = 0; event < 150; ++event) {
      if (event == 0 || chance(20) == 0) {
        Strings list;
        std::ranges::copy_if(all, std::back_inserter(list), [&](auto&) { return chance(2) == 0; });
        leaf.update(list);
      } else if (chance(20) == 0) {
        leaf.step(IdleExitRequested{});
      } else {
        const std::string& address = all[chance(all.size())];
        switch (chance(4)) {
          case 0:
            leaf.idle(address);
            break;
          case 1:
            leaf.connecting(address);
            break;
          case 2:
            leaf.ready(address);
            break;
          default:
            leaf.fail(address);
        }
      }
      const ConnectivityState state = leaf.state();
      const std::string pick = leaf.pick();
      if (sticky) CHECK((state == kReady || state == kFailed));
      sticky = state == kFailed;
      if (state == kIdle) CHECK(leaf.held.empty());
      if (state == kReady) CHECK(leaf.held == std::set<std::string>{pick});
    }
  }
}

}  // namespace
}  // namespace signalbox::lb
