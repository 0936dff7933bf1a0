// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/subchannel_map_core.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "tests/support/printed.hpp"

namespace signalbox::lb {
namespace {

using Strings = std::vector<std::string>;

Holder holder(const std::string& path, std::uint64_t incarnation = 1) {
  return {PolicyPath{path}, {incarnation}};
}

// The holder as "path#incarnation".
std::string name_of(const Holder& it) {
  return it.path.str() + "#" + absl::StrJoin(it.incarnation, ".");
}

class MapHarness {
 public:
  SubchannelMapEffects step(const SubchannelMapEvent& event) {
    SubchannelMapEffects effects = core.step(event, now);
    core.check_invariants();
    notified.clear();
    probed.clear();
    for (const SubchannelMapEffect& effect : effects)
      record(effect);
    return effects;
  }

  void acquire(const std::string& address, const Holder& by) {
    step(SubchannelAcquired{by, Address{address}});
  }

  void release(const std::string& address, const Holder& by) {
    step(SubchannelReleased{by, Address{address}});
  }

  void gone(const Holder& who, bool died) { step(HolderGone{who, died}); }

  void settled(const Holder& who) { step(HolderSettled{who}); }

  void start(Generation generation) {
    step(MapGenerationStarted{{ClusterName{"orders"}, std::chrono::seconds(3)}, generation});
  }

  /// As start(), with TLS and a matcher for this name.
  void secure(Generation generation, const std::string& name, int seconds = 3) {
    UpstreamTls tls{CertificateProvider{"files", ""}, std::nullopt, {}};
    tls.subject_alt_names.push_back({TextMatcher::Kind::kExact, name, false});
    step(MapGenerationStarted{{ClusterName{"orders"},
                               std::chrono::seconds(seconds),
                               std::make_shared<const UpstreamTls>(std::move(tls))},
                              generation});
  }

  /// As start(), with a health check every `interval` seconds; 0: without health checks.
  void check(Generation generation, int interval, const ProbeExceptions& exceptions = {}) {
    SubchannelSettings settings{ClusterName{"orders"}, std::chrono::seconds(3)};
    HealthCheck each;
    each.interval = std::chrono::seconds(interval);
    if (interval > 0)
      settings.health_checks = std::make_shared<const std::vector<HealthCheck>>(1, each);
    settings.probe_exceptions = std::make_shared<const ProbeExceptions>(exceptions);
    step(MapGenerationStarted{std::move(settings), generation});
  }

  void checked(const std::string& address, const std::string& why) {
    step(HealthChecked{Address{address},
                       why.empty() ? absl::OkStatus() : absl::UnavailableError(why)});
  }

  void applied(Generation generation) { step(MapGenerationApplied{generation}); }

  void tell(const std::string& address, ConnectivityState state) {
    SubchannelStateChanged event;
    event.address = Address{address};
    event.state = state;
    if (state == ConnectivityState::kReady)
      event.connection = std::make_shared<const Connection>(event.address);
    if (state == ConnectivityState::kTransientFailure)
      event.status = absl::UnavailableError("refused");
    step(event);
  }

  void unhealthy(const Strings& addresses,
                 HealthJudge judge = HealthJudge::kOutlierDetection,
                 const std::string& why = "ejected") {
    UnhealthyEndpoints table;
    for (const std::string& address : addresses)
      table[Address{address}] = absl::UnavailableError(why);
    step(
        EndpointHealthChanged{judge, std::make_shared<const UnhealthyEndpoints>(std::move(table))});
  }

  Strings names() const {
    Strings names;
    for (const NotifyHolder& it : notified)
      names.push_back(name_of(it.holder));
    return names;
  }

  SubchannelMapCore core;
  Instant now{};
  /// The addresses of subchannels that were spawned and not stopped.
  std::set<std::string> living;
  std::vector<NotifyHolder> notified;  ///< The reports to holders of the last step.
  std::vector<EndpointsCounted> counted;
  std::vector<EndpointsChanged> changed;
  int spawned = 0;
  Strings connects;
  SubchannelSettings last_settings;
  Strings probed;  ///< The effects on health checks of the last step.

 private:
  void record(const SubchannelMapEffect& effect) {
    if (const auto* spawn = std::get_if<SpawnSubchannel>(&effect)) {
      CHECK(living.insert(spawn->address.str()).second);
      last_settings = *spawn->settings;
      ++spawned;
    }
    if (const auto* stopped = std::get_if<StopSubchannel>(&effect))
      CHECK(living.erase(stopped->address.str()) == 1);
    if (const auto* started = std::get_if<StartHealthChecks>(&effect))
      probed.push_back("start " + started->address.str() + " at " + started->probed.str());
    if (const auto* ended = std::get_if<StopHealthChecks>(&effect))
      probed.push_back("stop " + ended->address.str());
    if (const auto* connect = std::get_if<ConnectSubchannel>(&effect))
      connects.push_back(connect->address.str());
    if (const auto* notify = std::get_if<NotifyHolder>(&effect)) notified.push_back(*notify);
    const auto* observe = std::get_if<Observe>(&effect);
    if (observe == nullptr) return;
    if (const auto* seen = std::get_if<EndpointsCounted>(&observe->observation))
      counted.push_back(*seen);
    if (const auto* seen = std::get_if<EndpointsChanged>(&observe->observation))
      changed.push_back(*seen);
  }
};

const std::set<std::string> kNothing{};
const std::set<std::string> kA{"a"};

TEST_CASE("subchannel_map: lives from the first acquisition to the last release",
          "[lb][subchannel_map]") {
  MapHarness map;
  map.start(1);
  map.applied(1);
  map.acquire("a", holder("x"));
  map.acquire("a", holder("y"));
  CHECK(map.spawned == 1);
  CHECK(map.last_settings.cluster == ClusterName{"orders"});
  CHECK(map.last_settings.connect_timeout == std::chrono::seconds(3));
  map.release("a", holder("x"));
  CHECK(map.living == kA);
  map.release("a", holder("y"));
  CHECK(map.living == kNothing);
}

TEST_CASE("subchannel_map: operators see every change of a subchannel, since when and why",
          "[lb][subchannel_map][status]") {
  using std::chrono::seconds;
  MapHarness map;
  const auto only = [&] {
    auto changes = map.core.take_changes();
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].first == Address{"a"});
    return std::move(changes[0].second);
  };
  map.start(1);
  map.applied(1);
  CHECK(map.core.take_changes().empty());
  map.acquire("a", holder("x"));
  auto seen = only();
  REQUIRE(seen);
  CHECK(seen->state == EndpointState::kIdle);
  CHECK(seen->since == Instant{});
  map.acquire("a", holder("y"));
  CHECK(map.core.take_changes().empty());

  map.now += seconds(1);
  map.tell("a", ConnectivityState::kReady);
  seen = only();
  REQUIRE(seen);
  CHECK(seen->state == EndpointState::kReady);
  CHECK(seen->since == map.now);
  REQUIRE(seen->connection);
  CHECK(seen->connection->address() == Address{"a"});

  // An ejected endpoint keeps its connection. A new reason for the ejection is not counted as
  // another ejection.
  map.now += seconds(1);
  map.unhealthy({"a"});
  seen = only();
  REQUIRE(seen);
  CHECK(seen->state == EndpointState::kEjected);
  CHECK(seen->raw == ConnectivityState::kReady);
  CHECK(seen->why == absl::UnavailableError("ejected"));
  CHECK(seen->ejections == 1);
  CHECK(seen->connection);
  const Instant ejected = map.now;
  map.now += seconds(1);
  map.unhealthy({"a"}, HealthJudge::kOutlierDetection, "worse");
  seen = only();
  REQUIRE(seen);
  CHECK(seen->since == ejected);
  CHECK(seen->why == absl::UnavailableError("worse"));
  CHECK(seen->ejections == 1);
  map.unhealthy({});
  map.unhealthy({"a"});
  seen = only();
  REQUIRE(seen);
  CHECK(seen->ejections == 2);
  map.unhealthy({});

  map.now += seconds(1);
  map.tell("a", ConnectivityState::kTransientFailure);
  seen = only();
  REQUIRE(seen);
  CHECK(seen->state == EndpointState::kTransientFailure);
  CHECK(seen->why == absl::UnavailableError("refused"));
  CHECK_FALSE(seen->connection);

  map.release("a", holder("x"));
  CHECK(map.core.take_changes().empty());
  map.release("a", holder("y"));
  CHECK_FALSE(only());
}

TEST_CASE("subchannel_map: settings of TLS that change replace every subchannel",
          "[lb][subchannel_map][A29]") {
  MapHarness map;
  map.start(1);
  map.acquire("ready", holder("x"));
  map.acquire("ready", holder("y"));
  map.acquire("failed", holder("x"));
  map.acquire("idle", holder("x"));
  map.tell("ready", ConnectivityState::kReady);
  map.tell("failed", ConnectivityState::kTransientFailure);
  map.applied(1);

  map.secure(2, "a");
  CHECK(map.spawned == 6);
  CHECK(map.living == std::set<std::string>{"failed", "idle", "ready"});
  REQUIRE(map.last_settings.tls != nullptr);
  CHECK(map.last_settings.tls->subject_alt_names.at(0).text == "a");
  // Holders get a report of IDLE, even when the state was IDLE before. An order to connect may be
  // lost with the old subchannel, and the report makes the holder repeat the order.
  CHECK(map.names() == Strings{"x#1", "x#1", "x#1", "y#1"});
  for (const NotifyHolder& told : map.notified) {
    CHECK(told.state.state == ConnectivityState::kIdle);
    CHECK(told.state.connection == nullptr);
    CHECK(told.state.status.ok());
  }
  CHECK(map.notified.at(0).state.address == Address{"failed"});
  CHECK(map.notified.at(1).state.address == Address{"idle"});
  CHECK(map.counted.back().by_state.at(static_cast<std::size_t>(EndpointState::kIdle)) == 3);
  map.tell("ready", ConnectivityState::kReady);

  SECTION("equal settings keep them, whatever else changes") {
    map.secure(3, "a", 7);
    CHECK(map.spawned == 6);
    CHECK(map.notified.empty());
    map.acquire("new", holder("x"));
    CHECK(map.last_settings.connect_timeout == std::chrono::seconds(7));
  }
  SECTION("other names are other settings") {
    map.secure(3, "b");
    CHECK(map.spawned == 9);
  }
  SECTION("no TLS is another setting too") {
    map.start(3);
    CHECK(map.spawned == 9);
    CHECK(map.last_settings.tls == nullptr);
  }
  SECTION("what an older generation says comes too late") {
    map.start(1);
    CHECK(map.spawned == 6);
  }
  SECTION("what the same generation says again counts") {
    map.secure(2, "b");
    CHECK(map.spawned == 9);
  }
}

TEST_CASE("subchannel_map: who has a connection is told who counts its calls",
          "[lb][subchannel_map][A50]") {
  struct Counts final : CallTracker {
    void ended(const CallEnd& /*end*/) const noexcept override {}
  };

  const auto first = std::make_shared<const Counts>();
  const auto second = std::make_shared<const Counts>();
  const auto track = [](CallTrackerPtr tracker) {
    TrackEndpoints::Table table{{Address{"a"}, std::move(tracker)}};
    return EndpointsTracked{std::make_shared<const TrackEndpoints::Table>(std::move(table))};
  };
  MapHarness map;
  map.acquire("a", holder("x"));
  map.acquire("b", holder("x"));
  map.step(track(first));
  CHECK(map.notified.empty());  // No subchannel has a connection.

  map.tell("a", ConnectivityState::kReady);
  REQUIRE(map.notified.size() == 1);
  CHECK(map.notified.front().state.tracker == first);
  map.tell("b", ConnectivityState::kReady);
  REQUIRE(map.notified.size() == 1);
  CHECK(map.notified.front().state.tracker == nullptr);

  map.step(track(first));
  CHECK(map.notified.empty());  // The trackers are the same.
  map.step(track(second));
  REQUIRE(map.names() == Strings{"x#1"});
  CHECK(map.notified.front().state.address == Address{"a"});
  CHECK(map.notified.front().state.tracker == second);
  map.step(EndpointsTracked{});
  REQUIRE(map.notified.size() == 1);
  CHECK(map.notified.front().state.tracker == nullptr);
}

TEST_CASE("subchannel_map: who counts calls is told in the order of addresses",
          "[lb][subchannel_map][A50]") {
  struct Counts final : CallTracker {
    void ended(const CallEnd& /*end*/) const noexcept override {}
  };

  MapHarness map;
  TrackEndpoints::Table table;
  for (char name = 'z'; name >= 'a'; --name) {
    map.acquire(std::string(1, name), holder("x"));
    map.tell(std::string(1, name), ConnectivityState::kReady);
    table[Address{std::string(1, name)}] = std::make_shared<const Counts>();
  }
  map.step(EndpointsTracked{std::make_shared<const TrackEndpoints::Table>(std::move(table))});
  std::string order;
  for (const auto& told : map.notified)
    order += told.state.address.str();
  CHECK(order == "abcdefghijklmnopqrstuvwxyz");
}

TEST_CASE("subchannel_map: an acquisition is answered by the present state",
          "[lb][subchannel_map]") {
  MapHarness map;
  map.acquire("a", holder("x"));
  REQUIRE(map.names() == Strings{"x#1"});
  CHECK(map.notified.front().state.state == ConnectivityState::kIdle);
  CHECK(map.notified.front().state.address == Address{"a"});
  map.tell("a", ConnectivityState::kReady);
  map.acquire("a", holder("y"));
  REQUIRE(map.names() == Strings{"y#1"});
  CHECK(map.notified.front().state.state == ConnectivityState::kReady);
  CHECK(map.notified.front().state.connection != nullptr);
}

TEST_CASE("subchannel_map: every change is told to all holders in one order",
          "[lb][subchannel_map]") {
  MapHarness map;
  for (const char* path : {"m", "z", "b"})
    map.acquire("a", holder(path));
  map.acquire("other", holder("c"));
  map.tell("a", ConnectivityState::kConnecting);
  CHECK(map.names() == Strings{"b#1", "m#1", "z#1"});
  map.tell("unknown", ConnectivityState::kConnecting);
  CHECK(map.names().empty());
}

TEST_CASE("subchannel_map: acquiring and releasing are idempotent", "[lb][subchannel_map]") {
  MapHarness map;
  map.acquire("a", holder("x"));
  map.acquire("a", holder("x"));
  map.tell("a", ConnectivityState::kConnecting);
  CHECK(map.names() == Strings{"x#1"});
  map.release("a", holder("y"));
  CHECK(map.living == kA);
  map.release("a", holder("x"));
  map.release("a", holder("x"));
  CHECK(map.living == kNothing);
  CHECK(map.spawned == 1);
}

TEST_CASE("subchannel_map: an endpoint that moves between priorities keeps its connection",
          "[lb][subchannel_map][A56]") {
  MapHarness map;
  map.start(1);
  map.acquire("a", holder("priority/0"));
  map.applied(1);
  map.tell("a", ConnectivityState::kReady);

  map.start(2);
  map.release("a", holder("priority/0"));
  CHECK(map.living == kA);
  map.tell("a", ConnectivityState::kReady);
  CHECK(map.names().empty());
  map.acquire("a", holder("priority/1"));
  REQUIRE(map.names() == Strings{"priority/1#1"});
  CHECK(map.notified.front().state.connection != nullptr);
  map.applied(2);
  CHECK(map.living == kA);
  CHECK(map.spawned == 1);
}

TEST_CASE("subchannel_map: what only lingers is dropped when the generation is applied",
          "[lb][subchannel_map]") {
  MapHarness map;
  map.acquire("a", holder("x"));
  map.start(2);
  map.release("a", holder("x"));
  map.start(3);
  map.applied(1);
  CHECK(map.living == kA);
  map.applied(2);
  CHECK(map.living == kNothing);

  map.acquire("a", holder("x"));
  map.release("a", holder("x"));  // Generation 3 is in progress.
  CHECK(map.living == kA);
  map.applied(3);
  CHECK(map.living == kNothing);
}

TEST_CASE("subchannel_map: nothing is applied before it was begun", "[lb][subchannel_map]") {
  MapHarness map;
  map.start(1);
  map.applied(9);
  map.acquire("a", holder("x"));
  map.start(2);
  map.release("a", holder("x"));
  CHECK(map.living == kA);
}

TEST_CASE("subchannel_map: who has gone is forgotten a generation later",
          "[lb][subchannel_map][supervision]") {
  MapHarness map;
  map.start(1);
  map.acquire("a", holder("x"));
  map.acquire("a", holder("y"));
  map.gone(holder("x"), false);
  map.applied(1);
  CHECK(map.core.remembered_holders() == 2);
  map.start(2);
  map.applied(2);
  CHECK(map.core.remembered_holders() == 1);
}

TEST_CASE("subchannel_map: a dead holder's holds wait for its successor",
          "[lb][subchannel_map][supervision]") {
  MapHarness map;
  map.start(1);
  map.acquire("a", holder("x", 1));
  map.acquire("b", holder("x", 1));
  map.applied(1);
  map.tell("a", ConnectivityState::kReady);
  map.gone(holder("x", 1), true);
  CHECK(map.living == std::set<std::string>{"a", "b"});
  map.tell("a", ConnectivityState::kReady);
  CHECK(map.names().empty());

  map.acquire("a", holder("x", 2));
  REQUIRE(map.names() == Strings{"x#2"});
  CHECK(map.notified.front().state.connection != nullptr);
  SECTION("the successor settles: what it did not retake is released") {
    map.settled(holder("x", 2));
    CHECK(map.living == kA);
    map.release("a", holder("x", 2));
    CHECK(map.living == kNothing);
  }
  SECTION("a later generation is applied: the same") {
    map.applied(1);
    CHECK(map.living == std::set<std::string>{"a", "b"});
    map.start(2);
    map.applied(2);
    CHECK(map.living == kA);
  }
  SECTION("it releases what it never took: nothing happens") {
    map.release("b", holder("x", 2));
    CHECK(map.living == std::set<std::string>{"a", "b"});
  }
}

TEST_CASE("subchannel_map: without a successor a dead holder's holds end with the next generation",
          "[lb][subchannel_map][supervision]") {
  MapHarness map;
  map.start(1);
  map.acquire("a", holder("x"));
  map.gone(holder("x"), true);
  map.applied(1);  // Generation 1 was in progress at the death.
  CHECK(map.living == kA);
  map.start(2);
  CHECK(map.living == kA);
  map.applied(2);
  CHECK(map.living == kNothing);
}

TEST_CASE("subchannel_map: a stopped holder's holds are released",
          "[lb][subchannel_map][supervision]") {
  MapHarness map;
  map.acquire("a", holder("x"));
  map.acquire("b", holder("x"));
  map.acquire("b", holder("y"));
  SECTION("at once") {
    map.gone(holder("x"), false);
  }
  SECTION("after it had died") {
    map.gone(holder("x"), true);
    CHECK(map.living == std::set<std::string>{"a", "b"});
    map.gone(holder("x"), false);
  }
  CHECK(map.living == std::set<std::string>{"b"});
  map.tell("b", ConnectivityState::kConnecting);
  CHECK(map.names() == Strings{"y#1"});
}

TEST_CASE("subchannel_map: what comes late from an earlier incarnation is dropped",
          "[lb][subchannel_map][supervision]") {
  MapHarness map;
  map.acquire("a", holder("x", 1));
  SECTION("after it has gone") {
    map.gone(holder("x", 1), false);
    map.acquire("b", holder("x", 1));
    CHECK(map.living == kNothing);
    CHECK(map.names().empty());
  }
  SECTION("the successor speaks before the death is told") {
    map.acquire("a", holder("x", 2));
    map.gone(holder("x", 1), true);
    map.release("a", holder("x", 1));
    map.acquire("b", holder("x", 1));
    map.gone(holder("x", 1), false);
    CHECK(map.living == kA);
    map.tell("a", ConnectivityState::kConnecting);
    CHECK(map.names() == Strings{"x#2"});
  }
  SECTION("the death is told before the successor's predecessor was ever heard of") {
    map.gone(holder("new", 4), true);
    map.acquire("b", holder("new", 4));
    CHECK(map.living == kA);
    map.acquire("b", holder("new", 5));
    CHECK(map.living == std::set<std::string>{"a", "b"});
  }
}

TEST_CASE("subchannel_map: what a dead policy started late is no successor",
          "[lb][subchannel_map][supervision]") {
  // Policy 18 has died, and 34 is its successor. Before 18's child 19 heard of the death, 19
  // started 42, which is the same holder as 38 below 34.
  const Holder late{PolicyPath{"x"}, {18, 19, 42}};
  const Holder successor{PolicyPath{"x"}, {34, 35, 38}};
  const std::string name = name_of(successor);
  MapHarness map;
  SECTION("it speaks first") {
    map.acquire("a", late);
    map.settled(late);
    map.acquire("a", successor);
    map.settled(successor);
    map.gone(late, true);
  }
  SECTION("it speaks last") {
    map.acquire("a", successor);
    map.settled(successor);
    map.acquire("a", late);
    map.acquire("b", late);
    map.settled(late);
    map.gone(late, true);
  }
  CHECK(map.living == kA);
  map.tell("a", ConnectivityState::kConnecting);
  CHECK(map.names() == Strings{name});
}

TEST_CASE("subchannel_map: health is told, the connection is left alone",
          "[lb][subchannel_map][A61]") {
  MapHarness map;
  map.acquire("a", holder("x"));
  map.tell("a", ConnectivityState::kReady);
  map.unhealthy({"a"});
  REQUIRE(map.notified.size() == 1);
  const SubchannelStateChanged ejected = map.notified.front().state;
  CHECK(ejected.state == ConnectivityState::kReady);
  CHECK(ejected.connection != nullptr);
  CHECK_FALSE(ejected.healthy);
  CHECK(ejected.status == absl::UnavailableError("ejected"));

  map.unhealthy({"a"});
  CHECK(map.notified.empty());  // The address is unhealthy already.

  map.tell("a", ConnectivityState::kTransientFailure);
  CHECK(map.notified.front().state.status == absl::UnavailableError("refused"));
  CHECK_FALSE(map.notified.front().state.healthy);

  map.release("a", holder("x"));
  map.acquire("a", holder("x"));
  // The new subchannel's address is still unhealthy.
  CHECK_FALSE(map.notified.front().state.healthy);
  map.unhealthy({});
  REQUIRE(map.notified.size() == 1);
  CHECK(map.notified.front().state.healthy);
  CHECK(map.notified.front().state.status.ok());
}

TEST_CASE("subchannel_map: a judge leaves the verdicts of another one alone",
          "[lb][subchannel_map][A61]") {
  const auto checks = HealthJudge::kHealthChecks;
  MapHarness map;
  for (const char* address : {"a", "b"}) {
    map.acquire(address, holder("x"));
    map.tell(address, ConnectivityState::kReady);
  }
  map.unhealthy({"a", "b"}, checks, "does not answer");
  CHECK(map.notified.size() == 2);
  map.unhealthy({"b"});
  map.unhealthy({"a"}, checks, "does not answer");
  REQUIRE(map.notified.size() == 1);  // The verdict on "a" stays the same.
  CHECK(map.notified.front().state.address == Address{"b"});
  CHECK_FALSE(map.notified.front().state.healthy);
  CHECK(map.notified.front().state.status == absl::UnavailableError("ejected"));
  map.unhealthy({});
  REQUIRE(map.notified.size() == 1);
  CHECK(map.notified.front().state.healthy);
  map.step(EndpointHealthChanged{checks, nullptr});
  REQUIRE(map.notified.size() == 1);
  CHECK(map.notified.front().state.address == Address{"a"});
  CHECK(map.notified.front().state.healthy);
}

// I10 in subchannel_map_core.hpp: which addresses are probed.
TEST_CASE("subchannel_map: who has a subchannel is probed", "[lb][subchannel_map][health_check]") {
  MapHarness map;
  map.check(1, 5, {{Address{"exempt:1"}, {true, 0}}, {Address{"[::1]:80"}, {false, 81}}});
  map.acquire("a:1", holder("x"));
  CHECK(map.probed == Strings{"start a:1 at a:1"});
  map.acquire("a:1", holder("y"));
  CHECK(map.probed.empty());
  map.acquire("exempt:1", holder("x"));
  CHECK(map.probed.empty());
  map.acquire("[::1]:80", holder("x"));
  CHECK(map.probed == Strings{"start [::1]:80 at [::1]:81"});
  map.applied(1);
  map.release("a:1", holder("x"));
  CHECK(map.probed.empty());
  map.release("a:1", holder("y"));
  CHECK(map.probed == Strings{"stop a:1"});
  map.release("exempt:1", holder("x"));
  CHECK(map.probed.empty());
}

TEST_CASE("subchannel_map: an endpoint that fails its checks is unfit, and keeps its connection",
          "[lb][subchannel_map][health_check][A61]") {
  MapHarness map;
  map.check(1, 5);
  map.acquire("a", holder("x"));
  map.acquire("a", holder("y"));
  map.tell("a", ConnectivityState::kReady);
  map.checked("a", "");
  CHECK(map.notified.empty());  // The endpoint counted as fit before its first check.
  map.checked("a", "refused");
  REQUIRE(map.notified.size() == 2);
  for (const NotifyHolder& told : map.notified) {
    CHECK_FALSE(told.state.healthy);
    CHECK(told.state.state == ConnectivityState::kReady);
    CHECK(told.state.connection != nullptr);
    CHECK(told.state.status == absl::UnavailableError("refused"));
  }
  const auto counted = [&](EndpointState state) {
    return map.counted.back().by_state.at(static_cast<std::size_t>(state));
  };
  CHECK(counted(EndpointState::kUnhealthy) == 1);
  // An unhealthy endpoint that is ejected as well counts as ejected. It stays unfit when its
  // ejection ends.
  map.unhealthy({"a"});
  CHECK(counted(EndpointState::kEjected) == 1);
  CHECK(map.notified.front().state.status == absl::UnavailableError("ejected"));
  map.unhealthy({});
  CHECK_FALSE(map.notified.front().state.healthy);
  CHECK(counted(EndpointState::kUnhealthy) == 1);
  // A new holder hears at once that the endpoint is unfit.
  map.acquire("a", holder("z"));
  CHECK_FALSE(map.notified.back().state.healthy);
  map.checked("a", "");
  CHECK(map.notified.size() == 3);
  CHECK(map.notified.front().state.healthy);
  CHECK(counted(EndpointState::kReady) == 1);
  // A result for an unknown address is ignored.
  map.checked("b", "refused");
  CHECK(map.notified.empty());
}

TEST_CASE("subchannel_map: other settings begin the probes anew, and only theirs",
          "[lb][subchannel_map][health_check]") {
  MapHarness map;
  map.check(1, 5);
  map.acquire("b:1", holder("x"));
  map.acquire("a:1", holder("x"));
  map.checked("a:1", "refused");
  map.check(2, 5);
  CHECK(map.probed.empty());
  SECTION("of all") {
    map.check(3, 7);
    CHECK(map.probed == Strings{"start a:1 at a:1", "start b:1 at b:1"});
    CHECK(map.notified.empty());  // "a:1" stays unfit until a check passes.
    map.checked("a:1", "");
    CHECK(map.notified.size() == 1);
  }
  SECTION("of one that is probed elsewhere") {
    map.check(3, 5, {{Address{"a:1"}, {false, 2}}});
    CHECK(map.probed == Strings{"start a:1 at a:2"});
  }
  SECTION("of one that is exempt") {
    map.check(3, 5, {{Address{"a:1"}, {true, 0}}});
    CHECK(map.probed == Strings{"stop a:1"});
    REQUIRE(map.notified.size() == 1);
    CHECK(map.notified.front().state.healthy);
    map.checked("a:1", "late");
    CHECK(map.notified.empty());
  }
  SECTION("there are none any more") {
    map.check(3, 0);
    CHECK(map.probed == Strings{"stop a:1", "stop b:1"});
    REQUIRE(map.notified.size() == 1);
    CHECK(map.notified.front().state.healthy);
    map.check(4, 5);
    CHECK(map.probed == Strings{"start a:1 at a:1", "start b:1 at b:1"});
  }
  SECTION("TLS") {
    map.secure(3, "s");
    CHECK(map.probed == Strings{"stop a:1", "stop b:1"});
  }
  SECTION("TLS alone") {
    SubchannelSettings settings{ClusterName{"orders"}, std::chrono::seconds(3)};
    HealthCheck each;
    each.interval = std::chrono::seconds(5);
    settings.health_checks = std::make_shared<const std::vector<HealthCheck>>(1, each);
    settings.probe_exceptions = std::make_shared<const ProbeExceptions>();
    settings.tls = std::make_shared<const UpstreamTls>(
        UpstreamTls{CertificateProvider{"files", ""}, std::nullopt, {}});
    map.step(MapGenerationStarted{std::move(settings), 3});
    CHECK(map.probed == Strings{"start a:1 at a:1", "start b:1 at b:1"});
  }
}

TEST_CASE("subchannel_map: passes on requests to connect what it has", "[lb][subchannel_map]") {
  MapHarness map;
  map.acquire("a", holder("x"));
  map.step(SubchannelConnectAsked{Address{"a"}});
  map.step(SubchannelConnectAsked{Address{"b"}});
  CHECK(map.connects == Strings{"a"});
}

// I8 in subchannel_map_core.hpp: short back-offs are allowed while few addresses fail.
TEST_CASE("subchannel_map: an address may be asked again soon while few of them fail",
          "[lb][subchannel_map][backoff]") {
  MapHarness map;
  const auto may_hurry = [&map] {
    const auto effects = map.step(SubchannelConnectAsked{Address{"lost"}});
    REQUIRE(effects.size() == 1);
    return std::get<ConnectSubchannel>(effects.front()).may_hurry;
  };
  map.acquire("lost", holder("x"));
  const auto failing =
      GENERATE(ConnectivityState::kConnecting, ConnectivityState::kTransientFailure);
  const auto other = GENERATE(ConnectivityState::kIdle, ConnectivityState::kReady);
  for (std::int64_t i = 0; i < SubchannelMapCore::kMostInHurry; ++i) {
    CAPTURE(i);
    CHECK(may_hurry());
    map.acquire(std::to_string(i), holder("x"));
    map.tell(std::to_string(i), failing);
  }
  CHECK_FALSE(may_hurry());
  map.tell("0", other);
  CHECK(may_hurry());
}

TEST_CASE("subchannel_map: counts its endpoints, and tells when the counts change",
          "[lb][subchannel_map]") {
  EndpointCounts before{};
  const auto counts = [&](std::int64_t ready, std::int64_t idle, std::int64_t ejected) {
    EndpointCounts by_state{};
    by_state[static_cast<std::size_t>(EndpointState::kReady)] = ready;
    by_state[static_cast<std::size_t>(EndpointState::kIdle)] = idle;
    by_state[static_cast<std::size_t>(EndpointState::kEjected)] = ejected;
    return EndpointsCounted{ClusterName{"orders"}, by_state, std::exchange(before, by_state)};
  };
  MapHarness map;
  map.start(1);
  map.applied(1);
  CHECK(map.counted.empty());
  map.acquire("a", holder("x"));
  map.acquire("b", holder("x"));
  map.tell("a", ConnectivityState::kReady);
  map.tell("a", ConnectivityState::kReady);
  map.unhealthy({"a"});
  map.release("a", holder("x"));
  map.release("b", holder("x"));
  const std::vector<EndpointsCounted> expected{counts(0, 1, 0),
                                               counts(0, 2, 0),
                                               counts(1, 1, 0),
                                               counts(0, 1, 1),
                                               counts(0, 1, 0),
                                               counts(0, 0, 0)};
  CHECK(map.counted == expected);
}

TEST_CASE("subchannel_map: an address counts in the first priority that has it",
          "[lb][subchannel_map][metrics]") {
  const auto endpoints = [](const std::vector<Strings>& priorities) {
    auto made = std::make_shared<Endpoints>();
    for (const Strings& addresses : priorities) {
      // Addresses are in turn healthy, degraded and unhealthy.
      Priority& priority = made->priorities.emplace_back();
      const auto lists = priority.lists();
      for (std::size_t at = 0; at < addresses.size(); ++at) {
        auto locality = std::make_shared<Locality>();
        locality->endpoints.push_back({.addresses = {Address(addresses[at])}});
        lists.at(at % lists.size())->push_back(locality);
      }
    }
    return made;
  };
  MapHarness map;
  // The number of idle endpoints of a priority, as the metrics show it.
  const auto idle = [&](std::optional<std::uint32_t> priority) {
    std::int64_t sum = 0;
    for (const EndpointsCounted& seen : map.counted) {
      const auto state = static_cast<std::size_t>(EndpointState::kIdle);
      if (seen.priority == priority) sum += seen.by_state[state] - seen.before[state];
    }
    return sum;
  };
  const SubchannelSettings settings{ClusterName{"orders"}};
  map.step(MapGenerationStarted{settings, 1, endpoints({{"a", "b"}, {"b", "c"}})});
  for (const char* address : {"a", "b", "c", "d"})
    map.acquire(address, holder("x"));
  CHECK(idle(0) == 2);
  CHECK(idle(1) == 1);
  CHECK(idle(std::nullopt) == 1);  // The configuration does not name "d".
  map.core.check_invariants();
  map.step(MapGenerationStarted{settings, 2, endpoints({{"c", "b"}, {"e", "a", "b"}})});
  CHECK(idle(0) == 2);
  CHECK(idle(1) == 1);
  CHECK(idle(std::nullopt) == 1);
  map.core.check_invariants();
  // "e" has no entry yet, "f" is unhealthy.
  map.step(MapGenerationStarted{settings, 3, endpoints({{"c"}, {"a", "e", "f"}})});
  CHECK(idle(0) == 1);
  CHECK(idle(1) == 1);
  for (const char* address : {"e", "f"})
    map.acquire(address, holder("x"));
  CHECK(idle(1) == 3);
  CHECK(idle(std::nullopt) == 2);
  map.step(MapGenerationStarted{settings, 4, nullptr});
  CHECK(idle(0) == 0);
  CHECK(idle(std::nullopt) == 6);
  map.core.check_invariants();
}

TEST_CASE("subchannel_map: a cluster without endpoints shows zeros",
          "[lb][subchannel_map][metrics]") {
  MapHarness map;
  map.start(1);
  CHECK(map.counted.empty());  // Counts begin when the cluster's endpoints are known.
  const SubchannelSettings settings{ClusterName{"orders"}};
  map.step(MapGenerationStarted{settings, 2, std::make_shared<const Endpoints>()});
  CHECK(map.counted == std::vector<EndpointsCounted>{{ClusterName{"orders"}, {}, {}}});
  map.step(MapGenerationStarted{settings, 3, std::make_shared<const Endpoints>()});
  CHECK(map.counted.size() == 1);
}

TEST_CASE("subchannel_map: tells which addresses come and go, and not which move",
          "[lb][subchannel_map][metrics]") {
  MapHarness map;
  map.start(1);
  map.applied(1);
  map.acquire("a", holder("x"));
  map.acquire("a", holder("y"));
  map.release("a", holder("x"));
  CHECK(map.changed == std::vector<EndpointsChanged>{{ClusterName{"orders"}, 1, 0}});
  map.start(2);
  map.release("a", holder("y"));  // "a" lingers until generation 2 is applied.
  map.acquire("a", holder("z"));
  map.applied(2);
  CHECK(map.changed.size() == 1);
  map.release("a", holder("z"));
  CHECK(map.changed.back() == EndpointsChanged{ClusterName{"orders"}, 0, 1});
}

// --- a small obvious model ---

// A plain model of the map's holds: a list, which is searched as a whole. Two small maps have the
// addresses that linger without a hold, and the newest incarnation of each holder.
struct Model {
  struct Hold {
    std::string path;
    std::uint64_t incarnation;
    std::string address;
    bool orphaned = false;
    Generation orphaned_in = 0;
  };

  struct Incarnation {
    std::uint64_t number;
    bool present = true;
    Generation gone_in = 0;
  };

  std::vector<Hold> holds;
  std::map<std::string, Generation> lingering;
  std::map<std::string, Incarnation> newest;
  Generation started = 0;
  Generation applied = 0;

  bool held(const std::string& address) const {
    return std::ranges::any_of(holds, [&](const Hold& it) { return it.address == address; });
  }

  void remove_if(const std::function<bool(const Hold&)>& condition) {
    std::set<std::string> lost;
    for (const Hold& it : holds) {
      if (condition(it)) lost.insert(it.address);
    }
    std::erase_if(holds, condition);
    for (const std::string& address : lost) {
      if (!held(address) && started > applied) lingering[address] = started;
    }
  }

  void orphan(const std::string& path) {
    for (Hold& it : holds) {
      if (it.path == path) it = {path, it.incarnation, it.address, true, started};
    }
  }

  bool heard(const Holder& who) {
    const std::string path = who.path.str();
    const auto [it, is_new] = newest.try_emplace(path, Incarnation{who.incarnation.back()});
    if (who.incarnation.back() > it->second.number) {
      if (it->second.present) orphan(path);
      it->second = {who.incarnation.back()};
    }
    return who.incarnation.back() == it->second.number && it->second.present;
  }

  void acquire(const Holder& who, const std::string& address) {
    if (!heard(who)) return;
    std::erase_if(
        holds, [&](const Hold& it) { return it.path == who.path.str() && it.address == address; });
    holds.push_back({who.path.str(), who.incarnation.back(), address});
    lingering.erase(address);
  }

  void release(const Holder& who, const std::string& address) {
    if (!heard(who)) return;
    remove_if([&](const Hold& it) {
      return it.path == who.path.str() && it.address == address && !it.orphaned;
    });
  }

  void settle(const Holder& who) {
    if (!heard(who)) return;
    remove_if([&](const Hold& it) { return it.path == who.path.str() && it.orphaned; });
  }

  void gone(const Holder& who, bool died) {
    const std::string path = who.path.str();
    const auto [it, is_new] = newest.try_emplace(path, Incarnation{who.incarnation.back()});
    if (who.incarnation.back() < it->second.number) return;
    if (who.incarnation.back() > it->second.number || it->second.present) {
      orphan(path);
      it->second = {who.incarnation.back(), false, started};
    }
    if (!died) remove_if([&](const Hold& hold) { return hold.path == path; });
  }

  void apply(Generation generation) {
    applied = std::max(applied, std::min(generation, started));
    remove_if([&](const Hold& it) { return it.orphaned && it.orphaned_in < applied; });
    std::erase_if(lingering, [&](const auto& it) { return it.second <= applied; });
    std::erase_if(
        newest, [&](const auto& it) { return !it.second.present && it.second.gone_in < applied; });
  }

  std::set<std::string> living() const {
    std::set<std::string> living;
    for (const Hold& it : holds)
      living.insert(it.address);
    for (const auto& [address, generation] : lingering)
      living.insert(address);
    return living;
  }

  Strings listeners(const std::string& address) const {
    std::map<std::string, std::string> in_order;
    for (const Hold& it : holds) {
      if (it.address == address && !it.orphaned)
        in_order[it.path] = name_of(holder(it.path, it.incarnation));
    }
    Strings names;
    for (const auto& [path, name] : in_order)
      names.push_back(name);
    return names;
  }
};

TEST_CASE("subchannel_map: agrees with a small model in any history",
          "[lb][subchannel_map][supervision]") {
  const Strings paths{"x", "y", "z"};
  const Strings addresses{"a", "b", "c", "d"};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    MapHarness map;
    Model model;
    std::map<std::string, std::uint64_t> incarnations;
    std::uint64_t step = 0;
    const auto chance = [&](std::uint64_t bound) {
      return draw_below(seed, Salt::kRouteFraction, bound, ++step);
    };
    for (int event = 0; event < 200; ++event) {
      const std::string& path = paths[chance(paths.size())];
      const std::string& address = addresses[chance(addresses.size())];
      std::uint64_t& newest = incarnations.try_emplace(path, 1).first->second;
      if (chance(12) == 0) ++newest;
      const Holder who = holder(path, newest - (newest > 1 && chance(6) == 0 ? 1 : 0));
      switch (chance(12)) {
        case 0:
        case 1:
        case 2:
        case 3:
          map.acquire(address, who);
          model.acquire(who, address);
          break;
        case 4:
        case 5:
          map.release(address, who);
          model.release(who, address);
          break;
        case 6:
          map.settled(who);
          model.settle(who);
          break;
        case 7: {
          const bool died = chance(2) == 0;
          map.gone(who, died);
          model.gone(who, died);
          if (who.incarnation.back() == newest) ++newest;  // Its successor is a new holder.
          break;
        }
        case 8:
          ++model.started;
          map.start(model.started);
          break;
        case 9: {
          const Generation generation = chance(model.started + 1);
          map.applied(generation);
          model.apply(generation);
          break;
        }
        default:
          map.tell(address, ConnectivityState::kConnecting);
          CHECK(map.names() == model.listeners(address));
      }
      REQUIRE(map.living == model.living());
      REQUIRE(map.core.size() == model.living().size());
    }
  }
}

}  // namespace
}  // namespace signalbox::lb
