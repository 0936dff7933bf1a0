// SPDX-License-Identifier: Apache-2.0
//
// EndpointSet by itself: localities that are replaced, or that two lists share; the data of a READY
// endpoint; addresses that endpoints share; connections on request; counters of calls. The tests of
// round_robin show some of this through the policy.
#include "lb/leaf/endpoint_set.hpp"

#include <string>
#include <variant>

#include <catch2/catch.hpp>

#include "tests/support/printed.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {
namespace {

using Strings = std::vector<std::string>;
using Connects = EndpointSet::Connects;

LocalityPtr locality_of(const Strings& endpoints, const char* zone = "z") {
  Locality locality = *slice_of(endpoints)->priorities[0].localities[0];
  locality.name.zone = zone;
  return std::make_shared<const Locality>(std::move(locality));
}

EndpointsPtr slice(std::vector<LocalityPtr> localities) {
  Endpoints slice;
  slice.priorities.push_back({std::move(localities)});
  return std::make_shared<const Endpoints>(std::move(slice));
}

SubchannelStateChanged ready(const char* address, CallTrackerPtr tracker = nullptr) {
  SubchannelStateChanged event;
  event.address = Address(address);
  event.state = ConnectivityState::kReady;
  event.connection = std::make_shared<const Connection>(event.address);
  event.tracker = std::move(tracker);
  return event;
}

Strings members(const EndpointSet& set) {
  Strings names;
  for (std::size_t at = 0; at < set.size(); ++at)
    names.push_back(set[at].endpoint->addresses.front().str());
  return names;
}

class NoTracker final : public CallTracker {
 public:
  void ended(const CallEnd& /*end*/) const noexcept override {}
};

TEST_CASE("endpoint_set: takes over localities that are the same, wherever they stand now",
          "[lb][endpoint_set][A61]") {
  EndpointSet set(Connects::kAtOnce);
  LbEffects effects;
  const auto x = locality_of({"a", "b"}, "x");
  const auto y = locality_of({"c", "d"}, "y");
  set.update(slice({x, y}), effects);
  CHECK(members(set) == Strings{"a", "b", "c", "d"});
  set.take_changes();

  effects.clear();
  set.update(slice({x, y}), effects);
  CHECK(effects.empty());
  CHECK_FALSE(set.take_changes().list);

  set.update(slice({y, x}), effects);
  CHECK(effects.empty());
  CHECK(members(set) == Strings{"c", "d", "a", "b"});
  CHECK(set.take_changes().list);

  set.update(slice({locality_of({"e"}, "w"), x}), effects);
  CHECK(members(set) == Strings{"e", "a", "b"});
  CHECK(count_of<AcquireSubchannel>(effects) == 1);
  CHECK(count_of<ReleaseSubchannel>(effects) == 2);
}

TEST_CASE("endpoint_set: an endpoint named twice is a member once, as long as anyone names it",
          "[lb][endpoint_set]") {
  EndpointSet set(Connects::kAtOnce);
  LbEffects effects;
  const auto x = locality_of({"a", "b"}, "x");
  const auto y = locality_of({"b", "c"}, "y");
  set.update(slice({x, y}), effects);
  CHECK(members(set) == Strings{"a", "b", "c"});
  CHECK(set[1].locality == x);
  set.update(slice({x, y}), effects);
  CHECK(members(set) == Strings{"a", "b", "c"});
  set.update(slice({y}), effects);
  CHECK(members(set) == Strings{"b", "c"});
  CHECK(set[0].locality == y);
  set.update(slice({y, x}), effects);
  CHECK(members(set) == Strings{"b", "c", "a"});
}

TEST_CASE("endpoint_set: members refer to the newest list, and say what changed of it",
          "[lb][endpoint_set]") {
  EndpointSet set(Connects::kAtOnce);
  LbEffects effects;
  auto first = locality_of({"a", "b"});
  const std::weak_ptr<const Locality> old = first;
  set.update(slice({first}), effects);
  set.observe(ready("a"), effects);
  set.take_changes();
  first = nullptr;

  set.update(slice({locality_of({"a", "b"})}), effects);
  CHECK(old.expired());
  CHECK_FALSE(set.take_changes().list);

  auto heavier = *locality_of({"a", "b"});
  heavier.endpoints[1].weight = 5;
  set.update(slice({std::make_shared<const Locality>(heavier)}), effects);
  auto changes = set.take_changes();
  CHECK(changes.list);
  CHECK_FALSE(changes.ready);  // b is not READY.

  heavier.weight = 9;
  set.update(slice({std::make_shared<const Locality>(heavier)}), effects);
  changes = set.take_changes();
  CHECK(changes.list);
  // The connections of READY endpoints stay, so a picker that knows only these needs no change.
  CHECK_FALSE(changes.ready);
  CHECK(set.ready()[0].endpoint->locality->weight == 9);
}

TEST_CASE("endpoint_set: members and their weights are counted as the list has them",
          "[lb][endpoint_set]") {
  for (const Connects connects : {Connects::kAtOnce, Connects::kWhenAsked}) {
    EndpointSet set(connects);
    LbEffects effects;
    Locality locality = *locality_of({"a", "b"});
    const auto update = [&] {
      set.update(slice({std::make_shared<const Locality>(locality)}), effects);
    };
    update();
    CHECK(set.all() == HostTally{2, 2});
    CHECK(set.fit() == HostTally{2, 2});

    locality.endpoints[1].weight = 5;
    update();
    CHECK(set.all() == HostTally{2, 6});
    CHECK(set.fit() == HostTally{2, 6});

    locality.weight = 9;
    update();
    CHECK(set.all() == HostTally{2, 6});

    locality.endpoints.erase(locality.endpoints.begin());
    update();
    CHECK(set.all() == HostTally{1, 5});
    CHECK(set.fit() == HostTally{1, 5});
  }
}

TEST_CASE("endpoint_set: an unfit address counts no more when no endpoint holds it",
          "[lb][endpoint_set]") {
  EndpointSet set(Connects::kWhenAsked);
  LbEffects effects;
  set.update(slice_of({"x", "y"}), effects);
  set.connect(Address("x"), effects);
  SubchannelStateChanged unhealthy = ready("x");
  unhealthy.healthy = false;
  set.observe(unhealthy, effects);
  REQUIRE(set.fit() == HostTally{1, 1});

  set.update(slice_of({"x,z", "y"}), effects);

  CHECK(count_of<ReleaseSubchannel>(effects) == 1);
  CHECK(set.fit() == HostTally{2, 2});
}

TEST_CASE("endpoint_set: a fit address counts no more when no endpoint holds it",
          "[lb][endpoint_set]") {
  EndpointSet set(Connects::kAtOnce, kAttemptDelay, nullptr, EndpointSet::Unreachable::kFit);
  LbEffects effects;
  set.update(slice_of({"x", "z"}), effects);
  SubchannelStateChanged unhealthy = ready("x");
  unhealthy.healthy = false;
  set.observe(unhealthy, effects);
  set.observe(ready("z"), effects);
  REQUIRE(set.fit() == HostTally{1, 1});

  // The new endpoint selects x, which is READY, and releases z. The old endpoint z goes after that.
  effects.clear();
  set.update(slice_of({"x,z"}), effects);

  CHECK(count_of<ReleaseSubchannel>(effects) == 1);
  CHECK(set.fit() == HostTally{});
  CHECK(set.all() == HostTally{1, 1});
}

TEST_CASE("endpoint_set: says of each READY endpoint who it is and who counts its calls",
          "[lb][endpoint_set][A61]") {
  EndpointSet set(Connects::kAtOnce);
  LbEffects effects;
  set.update(slice_of({"a,x", "b", "c"}), effects);
  const CallTrackerPtr one = std::make_shared<const NoTracker>();
  set.observe(ready("b", one), effects);
  for (const char* address : {"a", "x"}) {
    SubchannelStateChanged idle;
    idle.address = Address(address);
    set.observe(idle, effects);
  }
  set.observe(ready("x"), effects);
  const ReadyEndpoints both = set.ready();
  REQUIRE(both.size() == 2);
  CHECK(both[0].connection->address() == Address("x"));
  CHECK(both[0].endpoint->endpoint->addresses == std::vector{Address("a"), Address("x")});
  CHECK(both[0].endpoint->tracker == nullptr);
  CHECK(both[1].endpoint->tracker == one);

  // Endpoint b gets another tracker, and keeps its connection.
  set.take_changes();
  const CallTrackerPtr other = std::make_shared<const NoTracker>();
  auto again = ready("b", other);
  again.connection = set[1].connection;
  set.observe(again, effects);
  CHECK(set.take_changes().ready);
  CHECK(set.ready()[1].endpoint->tracker == other);
  set.observe(again, effects);
  CHECK_FALSE(set.take_changes().ready);

  // An unhealthy endpoint is not READY, but keeps its connection.
  effects.clear();
  again.healthy = false;
  set.observe(again, effects);
  CHECK(set.ready().size() == 1);
  CHECK(set[1].state == ConnectivityState::kTransientFailure);
  CHECK(effects.empty());
}

TEST_CASE("endpoint_set: the data of a READY endpoint makes the last picker wrong, a gain does not",
          "[lb][endpoint_set]") {
  EndpointSet set(Connects::kAtOnce);
  LbEffects effects;
  set.update(slice({locality_of({"a", "b"})}), effects);
  const CallTrackerPtr tracker = std::make_shared<const NoTracker>();
  auto of_a = ready("a", tracker);
  set.observe(of_a, effects);
  auto changes = set.take_changes();
  CHECK(changes.ready);
  CHECK_FALSE(changes.stale);

  SECTION("another tracker of its calls") {
    of_a.tracker = std::make_shared<const NoTracker>();
    set.observe(of_a, effects);
    changes = set.take_changes();
    CHECK(changes.ready);
    CHECK(changes.stale);
  }
  SECTION("another connection") {
    set.observe(ready("a", tracker), effects);
    CHECK(set.take_changes().stale);
  }
  SECTION("another locality") {
    set.update(slice({locality_of({"a", "b"}, "elsewhere")}), effects);
    changes = set.take_changes();
    CHECK(changes.list);
    CHECK(changes.stale);
    CHECK(set.ready()[0].endpoint->locality->name.zone == "elsewhere");
  }
  SECTION("another weight") {
    Locality heavier = *locality_of({"a", "b"});
    heavier.endpoints[0].weight = 5;
    set.update(slice({std::make_shared<const Locality>(heavier)}), effects);
    changes = set.take_changes();
    CHECK(changes.list);
    CHECK(changes.stale);
  }
}

TEST_CASE("endpoint_set: the same failure again is no change", "[lb][endpoint_set][A61]") {
  EndpointSet set(Connects::kAtOnce);
  LbEffects effects;
  set.update(slice_of({"a"}), effects);
  SubchannelStateChanged failed;
  failed.address = Address("a");
  failed.state = ConnectivityState::kTransientFailure;
  failed.status = absl::UnavailableError("refused");
  set.observe(failed, effects);
  CHECK(set.take_changes().failure);
  set.observe(failed, effects);
  CHECK_FALSE(set.take_changes().failure);
  failed.status = absl::UnavailableError("reset");
  set.observe(failed, effects);
  CHECK(set.take_changes().failure);
}

TEST_CASE("endpoint_set: the last failure is that of a member that has failed and counts",
          "[lb][endpoint_set][A61]") {
  EndpointSet set(Connects::kAtOnce);
  LbEffects effects;
  // The end of its text is the address.
  const auto last = [&] { return set.last_failure().message().back(); };
  set.update(slice_of({"a", "b", "c"}), effects);
  CHECK(set.last_failure().ok());
  for (const char* address : {"a", "b", "c"}) {
    SubchannelStateChanged failed;
    failed.address = Address(address);
    failed.state = ConnectivityState::kTransientFailure;
    failed.status = absl::UnavailableError(address);
    set.observe(failed, effects);
  }
  REQUIRE(last() == 'c');
  set.let_count(2, false);
  CHECK(last() == 'a');
  set.let_count(2, true);
  CHECK(last() == 'c');
  set.let_count(0, false);  // It was not the last.
  CHECK(last() == 'c');
  set.observe(ready("c"), effects);
  CHECK(last() == 'b');
  set.update(slice_of({"a", "c"}), effects);  // Neither has failed and counts.
  CHECK(set.last_failure().ok());
}

TEST_CASE("endpoint_set: connects when asked, by the first of an endpoint's addresses",
          "[lb][endpoint_set][A61]") {
  EndpointSet set(Connects::kWhenAsked);
  LbEffects effects;
  set.update(slice_of({"a,x", "b,y"}), effects);
  CHECK(effects.empty());
  CHECK(set.count(ConnectivityState::kIdle) == 2);
  set.connect(Address("x"), effects);
  CHECK(effects.empty());
  // The endpoint's addresses change their order: the endpoint is now known by address x.
  set.update(slice_of({"x,a", "b,y"}), effects);
  set.connect(Address("a"), effects);
  CHECK(effects.empty());
  set.connect(Address("x"), effects);
  CHECK(count_of<AcquireSubchannel>(effects) == 2);
  CHECK(set[0].state == ConnectivityState::kConnecting);
  set.update(nullptr, effects);
  CHECK(count_of<ReleaseSubchannel>(effects) == 2);
  effects.clear();
  set.connect(Address("x"), effects);
  CHECK(effects.empty());
}

TEST_CASE("endpoint_set: a timer is that of one endpoint, also if endpoints share the address",
          "[lb][endpoint_set][A61]") {
  EndpointSet set(Connects::kAtOnce);
  const auto report = [&](const char* address, ConnectivityState state) {
    SubchannelStateChanged event;
    event.address = Address(address);
    event.state = state;
    LbEffects effects;
    set.observe(event, effects);
    return effects;
  };
  const auto timer_in = [](const LbEffects& effects) {
    REQUIRE(count_of<StartTimer>(effects) == 1);
    return std::get<StartTimer>(effects.back()).timer;
  };
  LbEffects effects;
  set.update(slice({locality_of({"a,b"})}), effects);
  report("a", ConnectivityState::kIdle);
  const TimerId first = timer_in(report("b", ConnectivityState::kIdle));
  report("a", ConnectivityState::kConnecting);
  set.update(slice({locality_of({"a,b", "a,c"})}), effects);
  const TimerId second = timer_in(report("c", ConnectivityState::kIdle));

  effects.clear();
  set.fire(first, effects);
  REQUIRE(count_of<Connect>(effects) == 1);
  CHECK(std::get<Connect>(effects.front()).address == Address("b"));
  effects.clear();
  set.fire(second, effects);
  REQUIRE(count_of<Connect>(effects) == 1);
  CHECK(std::get<Connect>(effects.front()).address == Address("c"));
}

TEST_CASE("endpoint_set: 10,000 endpoints that share an address leave it one by one",
          "[lb][endpoint_set][scale]") {
  constexpr std::size_t kMany = 10'000;
  Strings endpoints;
  for (std::size_t at = 0; at < kMany; ++at)
    endpoints.push_back("own" + std::to_string(at) + ",shared");
  EndpointSet set(Connects::kAtOnce);
  LbEffects effects;
  set.update(slice_of(endpoints), effects);
  CHECK(count_of<AcquireSubchannel>(effects) == kMany + 1);

  // A READY endpoint keeps one address and gives up the shared address. The shared subchannel is
  // released with the last endpoint that gives it up.
  for (std::size_t at = 0; at + 1 < kMany; ++at) {
    effects.clear();
    set.observe(ready(("own" + std::to_string(at)).c_str()), effects);
    if (!effects.empty()) break;
  }
  CHECK(effects.empty());
  CHECK(set.count(ConnectivityState::kReady) == kMany - 1);
  set.observe(ready(("own" + std::to_string(kMany - 1)).c_str()), effects);
  REQUIRE(count_of<ReleaseSubchannel>(effects) == 1);
  CHECK(std::get<ReleaseSubchannel>(effects.front()).address == Address("shared"));

  effects.clear();
  set.update(nullptr, effects);
  CHECK(count_of<ReleaseSubchannel>(effects) == kMany);
}

TEST_CASE("endpoint_set: endpoints hear of their shared address in the order of their coming",
          "[lb][endpoint_set]") {
  EndpointSet set(Connects::kAtOnce);
  LbEffects effects;
  set.update(slice_of({"a,s", "b,s", "c,s"}), effects);
  set.update(slice_of({"c,s", "d,s", "b,s"}), effects);  // b came first, then c; d is new.
  effects.clear();
  set.observe(ready("s"), effects);
  Strings released;
  for (const LbEffect& effect : effects) {
    if (const auto* release = std::get_if<ReleaseSubchannel>(&effect))
      released.push_back(release->address.str());
  }
  CHECK(released == Strings{"b", "c", "d"});
}

TEST_CASE("endpoint_set: each member has a counter of its own for as long as it is one",
          "[lb][endpoint_set][A48]") {
  int made = 0;
  EndpointSet set(Connects::kAtOnce, kAttemptDelay, [&made]() -> CallTrackerPtr {
    ++made;
    return std::make_shared<const NoTracker>();
  });
  LbEffects effects;
  set.update(slice_of({"a", "b"}), effects);
  const CallTrackerPtr of_b = set[1].counter;
  CHECK(set[0].counter != of_b);
  set.update(slice_of({"b", "c"}), effects);
  CHECK(set[0].counter == of_b);
  CHECK(made == 3);
  set.update(slice_of({"c"}), effects);
  set.update(slice_of({"b", "c"}), effects);
  CHECK(set[0].counter != of_b);
}

}  // namespace
}  // namespace signalbox::lb
