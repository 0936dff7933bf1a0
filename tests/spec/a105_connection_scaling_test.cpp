// SPDX-License-Identifier: Apache-2.0
//
// gRFC A105 in the document's order: the number of connections, when another one is made, the
// states of the subchannel, and which calls get which streams. tests/e2e/runtime_streams_test shows
// the same with real servers.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/leaf/pick_first_core.hpp"
#include "lb/pick/router.hpp"
#include "lb/pick/stream_lanes.hpp"
#include "lb/subchannel/subchannel_core.hpp"
#include "lb/subchannel/subchannel_map_core.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "tests/support/complete_pick.hpp"
#include "tests/support/printed.hpp"
#include "tests/unit/xds/parse_support.hpp"
#include "xds/parse/cluster.hpp"

namespace signalbox {
namespace {

using lb::Pick;
using lb::StreamLanes;
using lb::StreamWait;
using lb::SubchannelCore;

const Address kAddress{"10.0.0.1:80"};

ReceivedResource cluster_with(const std::string& circuit_breakers) {
  return xds::parse_cluster(
      xds::serialise<envoy::config::cluster::v3::Cluster>(absl::StrCat(
          "name: \"c\" type: EDS eds_cluster_config { eds_config { ads {} } } circuit_breakers { ",
          circuit_breakers,
          " }")),
      {});
}

std::uint32_t connections_of(const std::string& circuit_breakers) {
  return xds::value_of<Cluster>(cluster_with(circuit_breakers)).max_connections_per_endpoint;
}

// A connection that may be dead.
struct Link : Connection {
  explicit Link(std::optional<std::uint32_t> limit) : Connection(kAddress, limit) {}

  bool takes_calls() const override { return is_alive; }

  bool is_alive = true;
};

std::shared_ptr<Link> link(std::optional<std::uint32_t> limit = 2) {
  return std::make_shared<Link>(limit);
}

template <typename Effect>
std::vector<Effect> all(const SubchannelEffects& effects) {
  std::vector<Effect> found;
  for (const SubchannelEffect& effect : effects) {
    if (const auto* it = std::get_if<Effect>(&effect)) found.push_back(*it);
  }
  return found;
}

template <typename Effect>
bool has(const SubchannelEffects& effects) {
  return !all<Effect>(effects).empty();
}

SubchannelCore subchannel(std::uint32_t max_connections, std::uint32_t most = 10) {
  lb::SubchannelOptions options;
  options.address = kAddress;
  SubchannelSettings settings;
  settings.max_connections = max_connections;
  options.settings = std::make_shared<const SubchannelSettings>(settings);
  options.most_connections = most;
  options.backoff.jitter = 0;
  return SubchannelCore(options);
}

// With one connection, of attempt 1.
SubchannelCore connected(std::uint32_t max_connections, std::uint32_t most = 10) {
  SubchannelCore core = subchannel(max_connections, most);
  core.step(ConnectRequested{}, {});
  core.step(Connected{1, link()}, {});
  return core;
}

const absl::Status kLost = absl::UnavailableError("Socket closed");

// The states that the effects report.
std::vector<ConnectivityState> told(const SubchannelEffects& effects) {
  std::vector<ConnectivityState> states;
  for (const auto& notice : all<NotifyState>(effects))
    states.push_back(notice.state.state);
  return states;
}

using States = std::vector<ConnectivityState>;
constexpr auto kIdle = ConnectivityState::kIdle;
constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kReady = ConnectivityState::kReady;
constexpr auto kFailed = ConnectivityState::kTransientFailure;

// The lanes of an endpoint, and how often they wanted another connection.
struct Endpoint {
  explicit Endpoint(const std::vector<std::shared_ptr<Link>>& first) : links(first) {
    for (const auto& link : links)
      lanes.add(++number, link, false);
  }

  // A call that has taken a stream.
  Pick call() {
    Pick pick = testing::complete_pick(kAddress);
    REQUIRE(lanes.take(pick) == StreamLanes::Answer::kTaken);
    return pick;
  }

  std::unique_ptr<StreamWait> wait() {
    return lanes.wait([this] { ++woken; });
  }

  bool is_full() {
    Pick pick = testing::complete_pick(kAddress);
    return lanes.take(pick) == StreamLanes::Answer::kFull;
  }

  int wanted = 0;
  int woken = 0;
  std::uint64_t number = 0;
  const std::vector<std::shared_ptr<Link>> links;  // Calls may need them longer than the lanes do.
  StreamLanes lanes{nullptr, [this] { ++wanted; }};
};

// --- configuration ---

TEST_CASE("max_connections: the first per-host threshold of priority DEFAULT counts",
          "[xds][A105-1]") {
  CHECK(connections_of("per_host_thresholds { max_connections { value: 5 } }") == 5);
  CHECK(connections_of("per_host_thresholds { priority: HIGH max_connections { value: 7 } } "
                       "per_host_thresholds { max_connections { value: 4 } } "
                       "per_host_thresholds { max_connections { value: 9 } }") == 4);
  CHECK(connections_of("per_host_thresholds { max_requests { value: 3 } } "
                       "per_host_thresholds { max_connections { value: 9 } }") == 1);
  CHECK(connections_of("thresholds { max_connections { value: 5 } }") == 1);
}

TEST_CASE("max_connections: unset is one connection, and 0 is refused", "[xds][A105-2]") {
  CHECK(connections_of("") == 1);
  const auto refused = cluster_with(
      "per_host_thresholds { priority: HIGH } "
      "per_host_thresholds { max_connections { value: 0 } }");
  CHECK(absl::StrContains(xds::error_of(refused),
                          "circuit_breakers.per_host_thresholds[1].max_connections: must be "
                          "greater than 0, found 0"));
}

TEST_CASE("max_connections: the program's limit caps the setting", "[lb][subchannel][A105-3]") {
  SubchannelCore core = connected(100, /*most=*/2);
  CHECK(has<OpenConnection>(core.step(StreamsWanted{}, {})));
  core.step(Connected{2, link()}, {});
  CHECK_FALSE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
  core.step(MaxConnectionsChanged{50}, {});
  CHECK_FALSE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
  CHECK(core.connections() == 2);
}

TEST_CASE("max_connections: a change reaches the subchannel, which keeps its connections",
          "[lb][subchannel][A105-4]") {
  lb::SubchannelMapCore map;
  const Holder holder{PolicyPath("leaf"), {1}};
  SubchannelSettings settings;
  map.step(MapGenerationStarted{settings, 1}, {});
  map.step(SubchannelAcquired{holder, kAddress}, {});
  settings.max_connections = 4;
  int told_limits = 0;
  for (const auto& effect : map.step(MapGenerationStarted{settings, 2}, {})) {
    CHECK_FALSE(std::holds_alternative<StopSubchannel>(effect));
    const auto* const limit = std::get_if<LimitConnections>(&effect);
    if (limit == nullptr) continue;
    ++told_limits;
    CHECK(limit->address == kAddress);
    CHECK(limit->max_connections == 4);
  }
  CHECK(told_limits == 1);

  // From 1 to 2: the connection of before now has lanes, as one that is shared.
  SubchannelCore core = connected(1);
  const auto up = core.step(MaxConnectionsChanged{2}, {});
  REQUIRE(all<OfferStreams>(up).size() == 1);
  CHECK(all<OfferStreams>(up).front().is_shared);
  CHECK(told(up) == States{kReady});
  CHECK(all<NotifyState>(up).front().has_lanes);
  CHECK(has<AskForDemand>(up));
  core.step(StreamsWanted{}, {});
  core.step(Connected{2, link()}, {});
  REQUIRE(core.connections() == 2);

  // From 2 to 1: both connections stay, until one is lost.
  const auto down = core.step(MaxConnectionsChanged{1}, {});
  CHECK_FALSE(has<DropConnection>(down));
  CHECK_FALSE(has<WithdrawStreams>(down));
  CHECK_FALSE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
  const auto lost = core.step(ConnectionClosed{1, kLost}, {});
  CHECK(core.connections() == 1);
  CHECK(all<WithdrawStreams>(lost).size() == 2);
  REQUIRE(told(lost) == States{kReady});
  CHECK_FALSE(all<NotifyState>(lost).front().has_lanes);
}

TEST_CASE("max_connections: a number that falls and rises forgets no call",
          "[lb][subchannel][lanes][A105-4][A105-8]") {
  SubchannelCore core = subchannel(2);
  core.step(ConnectRequested{}, {});
  const auto only = link(1);
  const bool falls_early = GENERATE(false, true);  // Before the connection is made, or after.
  CAPTURE(falls_early);
  if (falls_early) core.step(MaxConnectionsChanged{1}, {});
  const auto made = core.step(Connected{1, only}, {});
  CHECK(has<OfferStreams>(made) == !falls_early);
  if (!falls_early) {
    CHECK_FALSE(all<OfferStreams>(made).front().is_shared);
    CHECK(has<WithdrawStreams>(core.step(MaxConnectionsChanged{1}, {})));
  }
  const auto again = core.step(MaxConnectionsChanged{2}, {});
  REQUIRE(all<OfferStreams>(again).size() == 1);
  CHECK(all<OfferStreams>(again).front().is_shared);  // Calls of before may still use it.

  Endpoint endpoint({only});
  const Pick running = endpoint.call();
  endpoint.lanes.remove(1);
  endpoint.lanes.add(2, only, all<OfferStreams>(again).front().is_shared);
  CHECK(endpoint.is_full());
}

// --- one connection ---

TEST_CASE("one connection: no lane, no count, no question", "[lb][subchannel][A105-5]") {
  const auto limit = GENERATE(std::optional<std::uint32_t>(2), std::optional<std::uint32_t>());
  const std::uint32_t max_connections = limit ? 1 : 5;  // Without a known limit, 5 is as 1.
  CAPTURE(max_connections);
  SubchannelCore core = subchannel(max_connections);
  const auto opened = all<OpenConnection>(core.step(ConnectRequested{}, {}));
  REQUIRE(opened.size() == 1);
  CHECK(opened.front().is_alone == (max_connections > 1));
  const auto effects = core.step(Connected{1, link(limit)}, {});
  CHECK_FALSE(has<OfferStreams>(effects));
  CHECK_FALSE(has<AskForDemand>(effects));
  REQUIRE(told(effects) == States{kReady});
  CHECK_FALSE(all<NotifyState>(effects).front().has_lanes);
  CHECK_FALSE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
}

// --- connections ---

TEST_CASE("connections: calls take the oldest that has a free stream",
          "[lb][lanes][A105-6][A105-7]") {
  const auto old = link(2);
  const auto young = link(1);
  Endpoint endpoint({old, young});
  std::vector<Pick> calls;
  for (const auto& expected : {old, old, young}) {
    calls.push_back(endpoint.call());
    CHECK(calls.back().connection() == expected.get());
  }
  CHECK(endpoint.is_full());
  calls.at(1) = Pick();
  CHECK(endpoint.call().connection() == old.get());  // It ends at once.
  calls.at(2) = Pick();
  calls.push_back(endpoint.call());
  CHECK(calls.back().connection() == old.get());
  endpoint.lanes.remove(1);  // The oldest connection is lost: its calls go on.
  CHECK(calls.front().connection() == old.get());
  CHECK(endpoint.call().connection() == young.get());
  calls.clear();
  CHECK(endpoint.call().connection() == young.get());
}

TEST_CASE("connections: one without a known limit has as many streams as those before it",
          "[lb][lanes][A105-10][A105-11]") {
  Endpoint endpoint({link(2), link(std::nullopt)});
  std::vector<Pick> calls;
  calls.reserve(5);
  for (int i = 0; i < 4; ++i)
    calls.push_back(endpoint.call());
  CHECK(endpoint.is_full());
  const auto wait = endpoint.wait();
  CHECK(endpoint.wanted == 1);

  // The connection with the limit is lost. The next one has no known limit either.
  endpoint.lanes.remove(1);
  endpoint.lanes.add(3, link(std::nullopt), false);
  CHECK(wait->is_over());
  calls.push_back(endpoint.call());
  CHECK(endpoint.is_full());
}

TEST_CASE("connections: an attempt begins when calls wait and there may be more connections",
          "[lb][subchannel][A105-11]") {
  SubchannelCore core = connected(2);
  CHECK_FALSE(has<OpenConnection>(core.step(ConnectRequested{}, {})));
  const auto wanted = core.step(StreamsWanted{}, {});
  REQUIRE(all<OpenConnection>(wanted).size() == 1);
  CHECK(all<OpenConnection>(wanted).front().attempt == 2);
  CHECK(all<OpenConnection>(wanted).front().is_alone);
  CHECK(told(wanted).empty());  // READY, as before.
  const auto made = core.step(Connected{2, link()}, {});
  REQUIRE(all<OfferStreams>(made).size() == 1);
  CHECK_FALSE(all<OfferStreams>(made).front().is_shared);
  CHECK(told(made).empty());
  CHECK_FALSE(has<AskForDemand>(made));  // There are as many as there may be.
  CHECK_FALSE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
}

TEST_CASE("connections: one attempt at a time", "[lb][subchannel][A105-12]") {
  SubchannelCore core = connected(5);
  REQUIRE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
  CHECK_FALSE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
  const auto made = core.step(Connected{2, link()}, {});
  CHECK(has<AskForDemand>(made));  // Calls may want another one at once.
  CHECK(has<OpenConnection>(core.step(StreamsWanted{}, {})));
}

TEST_CASE("connections: none is closed by the subchannel; a lost one makes room",
          "[lb][subchannel][A105-18]") {
  SubchannelCore core = connected(2);
  core.step(StreamsWanted{}, {});
  core.step(Connected{2, link()}, {});
  const auto lost = core.step(ConnectionClosed{2, kLost}, {});
  REQUIRE(all<DropConnection>(lost).size() == 1);
  CHECK(all<DropConnection>(lost).front().attempt == 2);
  REQUIRE(all<WithdrawStreams>(lost).size() == 1);
  CHECK(all<WithdrawStreams>(lost).front().attempt == 2);
  CHECK(told(lost).empty());  // The oldest connection is the same.
  CHECK(has<AskForDemand>(lost));
  CHECK(has<OpenConnection>(core.step(StreamsWanted{}, {})));
}

TEST_CASE("connections: while calls wait, the ends of calls without a stream are looked for",
          "[lb][subchannel][lanes][A105-16]") {
  using namespace std::chrono_literals;
  // The connection is from a time with one connection, so calls that took no stream may use it.
  const auto only = link(1);
  SubchannelCore core = subchannel(1);
  core.step(ConnectRequested{}, {});
  core.step(Connected{1, only}, {});
  core.step(MaxConnectionsChanged{2}, {});
  Endpoint endpoint({});
  endpoint.lanes.add(1, only, true);
  std::optional<Use> other(std::in_place, *only);
  REQUIRE(endpoint.is_full());
  const auto wait = endpoint.wait();
  REQUIRE(endpoint.wanted == 1);

  const auto wanted = core.step(StreamsWanted{}, {});
  CHECK(has<OpenConnection>(wanted));
  REQUIRE(all<StartTimer>(wanted).size() == 1);
  const StartTimer timer = all<StartTimer>(wanted).front();
  CHECK(timer.delay == SubchannelCore::kSharedPause);
  CHECK_FALSE(has<StartTimer>(core.step(StreamsWanted{}, {})));  // One timer at a time.
  other.reset();
  CHECK_FALSE(wait->is_over());
  REQUIRE(has<AskForDemand>(core.step(TimerFired{timer.timer}, {})));
  CHECK_FALSE(endpoint.lanes.has_demand());
  CHECK(wait->is_over());

  SECTION("and again, while there is demand, also in back-off") {
    core.step(ConnectFailed{2, kLost}, {});
    const auto still = core.step(StreamsWanted{}, {});
    REQUIRE(all<StartTimer>(still).size() == 1);
    CHECK(all<StartTimer>(still).front().timer == timer.timer);
  }
  SECTION("but not when streams are no longer offered") {
    core.step(ConnectFailed{2, kLost}, {});
    core.step(StreamsWanted{}, {});
    core.step(MaxConnectionsChanged{1}, {});
    CHECK_FALSE(has<AskForDemand>(core.step(TimerFired{timer.timer}, {})));
  }
}

TEST_CASE("connections: the end of a call on a shared connection wakes one that waits",
          "[lb][lanes][A105-16]") {
  const auto shared = link(2);
  Endpoint endpoint({});
  endpoint.lanes.add(1, shared, true);
  const Use other(*shared);
  Pick running = endpoint.call();
  REQUIRE(endpoint.is_full());
  const auto first = endpoint.wait();
  const auto second = endpoint.wait();
  SECTION("at its end") {
    running.end(0);
  }
  SECTION("when its pick is given up") {
    running = Pick();
  }
  SECTION("when its pick is put off") {
    running.put_off();
  }
  CHECK(first->is_over());
  CHECK_FALSE(second->is_over());
  Pick pick = testing::complete_pick(kAddress);
  REQUIRE(first->claim(pick) == StreamWait::Answer::kTaken);
}

TEST_CASE("connections: all calls of a connection that is not shared say when they end",
          "[lb][subchannel][A105-16]") {
  SubchannelCore core = connected(2);
  CHECK_FALSE(has<StartTimer>(core.step(StreamsWanted{}, {})));
}

// --- back-off and states ---

TEST_CASE("back-off: holds for all attempts, and a success ends it", "[lb][subchannel][A105-13]") {
  using namespace std::chrono_literals;
  SubchannelCore core = connected(3);
  core.step(StreamsWanted{}, {});
  const auto failed = core.step(ConnectFailed{2, kLost}, {});
  REQUIRE(all<StartTimer>(failed).size() == 1);
  CHECK(all<StartTimer>(failed).front().delay == 1s);
  CHECK(told(failed).empty());
  CHECK_FALSE(has<AskForDemand>(failed));
  CHECK_FALSE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
  const auto over = core.step(TimerFired{all<StartTimer>(failed).front().timer}, {});
  CHECK(has<AskForDemand>(over));
  REQUIRE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
  const auto again = core.step(ConnectFailed{3, kLost}, {});
  CHECK(all<StartTimer>(again).front().delay == 1600ms);
  core.step(TimerFired{all<StartTimer>(again).front().timer}, {});
  core.step(StreamsWanted{}, {});
  core.step(Connected{4, link()}, {});
  core.step(StreamsWanted{}, {});
  CHECK(all<StartTimer>(core.step(ConnectFailed{5, kLost}, {})).front().delay == 1s);
}

TEST_CASE("back-off: further connections that end at once are made with pauses",
          "[lb][subchannel][A105-13]") {
  using namespace std::chrono_literals;
  SubchannelCore core = connected(2);
  const auto end_at_once = [&core](std::uint64_t attempt) {
    REQUIRE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
    core.step(Connected{attempt, link()}, {});
    return core.step(ConnectionClosed{attempt, kLost}, {});
  };
  CHECK_FALSE(has<StartTimer>(end_at_once(2)));
  const auto again = end_at_once(3);
  REQUIRE(all<StartTimer>(again).size() == 1);
  CHECK(all<StartTimer>(again).front().delay == 1s);
  CHECK_FALSE(has<AskForDemand>(again));
  CHECK_FALSE(has<OpenConnection>(core.step(StreamsWanted{}, {})));
  CHECK(core.state() == kReady);
}

TEST_CASE("back-off: young connections that end together are one early end",
          "[lb][subchannel][A105-13]") {
  using namespace std::chrono_literals;
  SubchannelCore core = connected(3);
  for (const std::uint64_t attempt : {2U, 3U}) {
    core.step(StreamsWanted{}, {});
    core.step(Connected{attempt, link()}, {});
  }
  for (const std::uint64_t attempt : {2U, 3U, 1U})
    CHECK_FALSE(has<StartTimer>(core.step(ConnectionClosed{attempt, kLost}, {})));
  CHECK(core.state() == ConnectivityState::kIdle);
  // The next one is the second.
  core.step(ConnectRequested{}, {});
  core.step(Connected{4, link()}, {});
  CHECK(has<StartTimer>(core.step(ConnectionClosed{4, kLost}, {})));
}

TEST_CASE("states: READY with a connection, else as the attempt says",
          "[lb][subchannel][A105-14]") {
  SubchannelCore core = connected(2);
  CHECK(core.state() == kReady);
  SECTION("an attempt runs when the last connection is lost") {
    core.step(StreamsWanted{}, {});
    CHECK(core.state() == kReady);
    CHECK(told(core.step(ConnectionClosed{1, kLost}, {})) == States{kConnecting});
    CHECK(told(core.step(Connected{2, link()}, {})) == States{kReady});
  }
  SECTION("the back-off runs when the last connection is lost") {
    core.step(StreamsWanted{}, {});
    const auto failed = core.step(ConnectFailed{2, kLost}, {});
    CHECK(core.state() == kReady);
    const auto lost = core.step(ConnectionClosed{1, absl::UnavailableError("gone")}, {});
    REQUIRE(told(lost) == States{kFailed});
    CHECK(all<NotifyState>(lost).front().state.status == kLost);
    CHECK(told(core.step(TimerFired{all<StartTimer>(failed).front().timer}, {})) == States{kIdle});
  }
  SECTION("neither") {
    CHECK(told(core.step(ConnectionClosed{1, kLost}, {})) == States{kIdle});
  }
  SECTION("another connection becomes the oldest") {
    core.step(StreamsWanted{}, {});
    const auto young = link();
    core.step(Connected{2, young}, {});
    const auto lost = core.step(ConnectionClosed{1, kLost}, {});
    REQUIRE(told(lost) == States{kReady});
    CHECK(all<NotifyState>(lost).front().state.connection == young);
  }
}

TEST_CASE("pick_first: begins a pass when the selected subchannel is CONNECTING or failing",
          "[lb][pick_first][A105-15]") {
  const auto state = GENERATE(kConnecting, kFailed, kIdle);
  CAPTURE(state);
  const Address other{"10.0.0.2:80"};
  lb::PickFirst first(lb::PickFirst::WhenLost::kGoIdle);
  LbEffects effects;
  first.update({kAddress, other}, effects);
  const auto report = [&](const Address& address, ConnectivityState now) {
    SubchannelStateChanged event;
    event.address = address;
    event.state = now;
    if (now == kReady) event.connection = link();
    if (now == kFailed) event.status = kLost;
    effects.clear();
    first.observe(event, effects);
  };
  report(kAddress, kIdle);
  report(other, kIdle);
  report(kAddress, kReady);
  REQUIRE(first.state() == kReady);
  report(kAddress, state);
  CHECK(first.state() == (state == kIdle ? kIdle : kConnecting));
  int acquired = 0;
  for (const auto& effect : effects)
    acquired += std::holds_alternative<AcquireSubchannel>(effect) ? 1 : 0;
  CHECK(acquired == (state == kIdle ? 0 : 1));  // The pass needs the other address too.
}

TEST_CASE("pick_first: the death of the selected subchannel's actor is a lost connection",
          "[lb][pick_first][subchannel_map][A62][A105-15]") {
  lb::SubchannelMapCore map;
  const Holder holder{PolicyPath("leaf"), {1}};
  lb::PickFirst first(lb::PickFirst::WhenLost::kGoIdle);
  LbEffects effects;
  States reported;
  // Passes the map's reports to pick_first.
  const auto tell = [&](const SubchannelMapEvent& event) {
    for (const auto& effect : map.step(event, {})) {
      const auto* const notice = std::get_if<NotifyHolder>(&effect);
      if (notice == nullptr) continue;
      reported.push_back(notice->state.state);
      first.observe(notice->state, effects);
    }
  };
  const auto report = [&](ConnectivityState state) {
    SubchannelStateChanged event;
    event.address = kAddress;
    event.state = state;
    if (state == kReady) event.connection = link();
    tell(event);
  };
  first.update({kAddress}, effects);
  tell(SubchannelAcquired{holder, kAddress});
  report(kConnecting);
  SECTION("READY: pick_first is IDLE, and asks for new endpoints") {
    report(kReady);
    REQUIRE(first.state() == kReady);
    effects.clear();
    reported.clear();
    tell(SubchannelDied{kAddress, kLost});
    CHECK(reported == States{kIdle, kFailed});
    CHECK(first.state() == kIdle);
    REQUIRE(effects.size() == 2);
    CHECK(std::holds_alternative<RequestReresolution>(effects.front()));
    CHECK(std::holds_alternative<ReleaseSubchannel>(effects.back()));
  }
  SECTION("CONNECTING: the attempt has failed") {
    reported.clear();
    tell(SubchannelDied{kAddress, kLost});
    CHECK(reported == States{kFailed});
    CHECK(first.state() == kFailed);
    CHECK(absl::StrContains(first.status().message(), kLost.message()));
  }
  map.check_invariants();
}

// --- calls ---

TEST_CASE("calls: without a working connection a call picks again", "[lb][lanes][A105-9]") {
  const auto only = link();
  Endpoint endpoint({only});
  Pick pick = testing::complete_pick(kAddress);
  SECTION("the connection is dead, and the subchannel does not know it yet") {
    only->is_alive = false;
    CHECK(endpoint.lanes.take(pick) == StreamLanes::Answer::kGone);
    only->is_alive = true;
    CHECK(endpoint.lanes.take(pick) == StreamLanes::Answer::kTaken);
  }
  SECTION("there is none") {
    endpoint.lanes.remove(1);
    CHECK(endpoint.lanes.take(pick) == StreamLanes::Answer::kGone);
    const auto wait = endpoint.wait();
    CHECK(wait->is_over());
    CHECK(wait->claim(pick) == StreamWait::Answer::kGone);
  }
  SECTION("the last one is lost while the call waits") {
    const Pick first = endpoint.call();
    const Pick second = endpoint.call();
    const auto wait = endpoint.wait();
    CHECK_FALSE(wait->is_over());
    endpoint.lanes.remove(1);
    CHECK(endpoint.woken == 1);
    CHECK(wait->claim(pick) == StreamWait::Answer::kGone);
    endpoint.lanes.add(2, link(1), false);
    const Pick third = endpoint.call();
    const auto next = endpoint.wait();
    CHECK(endpoint.wanted == 2);  // The first message was about a wait that is over.
  }
  SECTION("it dies between the grant of its stream and the call's use of it") {
    endpoint.lanes.add(2, link(1), false);
    std::vector<Pick> running;
    running.reserve(3);
    for (int i = 0; i < 3; ++i)
      running.push_back(endpoint.call());
    const auto wait = endpoint.wait();
    running.front() = Pick();
    REQUIRE(wait->is_over());
    only->is_alive = false;
    REQUIRE(wait->claim(pick) == StreamWait::Answer::kLost);
    CHECK(pick.connection() == only.get());
    pick.put_off();
    running.back() = Pick();
    Pick next = testing::complete_pick(kAddress);
    REQUIRE(endpoint.lanes.take(next) == StreamLanes::Answer::kTaken);
    CHECK(next.connection() != only.get());
  }
}

TEST_CASE("calls: beyond all streams they wait, and get streams in order",
          "[lb][lanes][A105-10][A105-16]") {
  Endpoint endpoint({link(1)});
  Pick running = endpoint.call();
  REQUIRE(endpoint.is_full());
  const auto first = endpoint.wait();
  const auto second = endpoint.wait();
  const auto third = endpoint.wait();
  CHECK(endpoint.wanted == 1);  // One message, however many calls wait.
  CHECK(absl::StrContains(endpoint.lanes.text(), "all 1 stream of 1 connection"));

  running.end(0);  // The end of a call.
  CHECK(first->is_over());
  CHECK_FALSE(second->is_over());
  Pick pick = testing::complete_pick(kAddress);
  REQUIRE(first->claim(pick) == StreamWait::Answer::kTaken);
  CHECK(endpoint.is_full());

  endpoint.lanes.add(2, link(1), false);  // A new connection.
  CHECK(second->is_over());
  CHECK_FALSE(third->is_over());
  CHECK(endpoint.lanes.has_demand());
  CHECK(endpoint.woken == 2);
  Pick other = testing::complete_pick(kAddress);
  REQUIRE(second->claim(other) == StreamWait::Answer::kTaken);
  other.put_off();  // An attempt that is put off ends, too.
  CHECK(third->is_over());
  CHECK_FALSE(endpoint.lanes.has_demand());
  CHECK(endpoint.wanted == 1);
}

TEST_CASE("calls: one that gives up its place or its stream leaves it to the next",
          "[lb][lanes][A105-10]") {
  Endpoint endpoint({link(1)});
  Pick running = endpoint.call();
  auto first = endpoint.wait();
  auto second = endpoint.wait();
  const auto third = endpoint.wait();
  first = nullptr;  // Its deadline has passed.
  running = Pick();
  CHECK(second->is_over());
  second = nullptr;  // The same, when it had got a stream already.
  CHECK(third->is_over());
  Pick pick = testing::complete_pick(kAddress);
  CHECK(third->claim(pick) == StreamWait::Answer::kTaken);
}

TEST_CASE("calls: the calls of all connections are counted, and those that took no stream",
          "[lb][lanes]") {
  const auto shared = link(2);
  Endpoint endpoint({link(1), link(1)});
  endpoint.lanes.add(3, shared, true);
  CHECK(endpoint.lanes.calls() == 0);
  std::vector<Pick> calls;
  calls.reserve(3);
  for (int i = 0; i < 3; ++i)
    calls.push_back(endpoint.call());
  const Use other(*shared);
  CHECK(endpoint.lanes.calls() == 4);
  const auto wait = endpoint.wait();
  CHECK(endpoint.lanes.calls() == 4);
  calls.pop_back();  // Its stream goes to the call that waits.
  CHECK(wait->is_over());
  CHECK(endpoint.lanes.calls() == 4);
  endpoint.lanes.remove(1);
  CHECK(endpoint.lanes.calls() == 3);
}

}  // namespace
}  // namespace signalbox
