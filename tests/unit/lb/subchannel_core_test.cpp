// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/subchannel_core.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/printed.hpp"

namespace signalbox::lb::subchannel_core_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using namespace std::chrono_literals;

constexpr auto kIdle = ConnectivityState::kIdle;
constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kReady = ConnectivityState::kReady;
constexpr auto kFailed = ConnectivityState::kTransientFailure;

SubchannelOptions options(std::uint64_t seed = 1) {
  SubchannelOptions options;
  options.address = Address{"10.0.0.1:80"};
  options.settings = std::make_shared<const SubchannelSettings>(
      SubchannelSettings{ClusterName{"orders"}, seconds(7)});
  options.seed = seed;
  return options;
}

ConnectionPtr connection() {
  return std::make_shared<const Connection>(Address{"10.0.0.1:80"});
}

Connected connected(std::uint64_t attempt) {
  return {attempt, connection()};
}

ConnectFailed refused(std::uint64_t attempt) {
  return {attempt, absl::UnavailableError("refused")};
}

ConnectionClosed closed(std::uint64_t attempt) {
  return {attempt, absl::UnavailableError("Connection reset by peer")};
}

template <typename Effect>
std::vector<Effect> all(const SubchannelEffects& effects) {
  std::vector<Effect> found;
  for (const SubchannelEffect& effect : effects) {
    if (const auto* it = std::get_if<Effect>(&effect)) found.push_back(*it);
  }
  return found;
}

constexpr Instant kLater{10s};

// A subchannel in `state` at kLater. The connection of attempt 1 has closed then. Attempt 2 is the
// newest one, except in IDLE, where it has not begun.
SubchannelCore in_state(ConnectivityState state) {
  SubchannelCore core(options());
  core.step(ConnectRequested{}, {});
  core.step(connected(1), {});
  core.step(closed(1), kLater);
  if (state == kIdle) return core;
  core.step(ConnectRequested{}, kLater);
  if (state == kReady) core.step(connected(2), kLater);
  if (state == kFailed) core.step(refused(2), kLater);
  return core;
}

TEST_CASE("subchannel: every state and every event", "[lb][subchannel][A61]") {
  struct Row {
    const char* when;
    ConnectivityState from;
    SubchannelEvent event;
    ConnectivityState to;
    std::optional<std::uint64_t> dropped;
  };

  const TimerFired current{{"backoff", 2}};
  const TimerFired stale{{"backoff", 1}};
  const std::vector<Row> rows{
      {"idle, connect", kIdle, ConnectRequested{}, kConnecting, {}},
      {"idle, connected late", kIdle, connected(1), kIdle, 1},
      {"idle, failed late", kIdle, refused(1), kIdle, {}},
      {"idle, closed late", kIdle, closed(1), kIdle, {}},
      {"idle, timer late", kIdle, current, kIdle, {}},
      {"connecting, connect again", kConnecting, ConnectRequested{}, kConnecting, {}},
      {"connecting, connected", kConnecting, connected(2), kReady, {}},
      {"connecting, connected late", kConnecting, connected(1), kConnecting, 1},
      {"connecting, failed", kConnecting, refused(2), kFailed, {}},
      {"connecting, failed late", kConnecting, refused(1), kConnecting, {}},
      {"connecting, closed late", kConnecting, closed(1), kConnecting, {}},
      {"connecting, timer late", kConnecting, stale, kConnecting, {}},
      {"ready, connect", kReady, ConnectRequested{}, kReady, {}},
      {"ready, connected twice", kReady, connected(2), kReady, {}},
      {"ready, connected late", kReady, connected(1), kReady, 1},
      {"ready, failed late", kReady, refused(2), kReady, {}},
      {"ready, closed", kReady, closed(2), kIdle, 2},
      {"ready, closed late", kReady, closed(1), kReady, {}},
      {"ready, timer late", kReady, current, kReady, {}},
      {"backoff, connect is not remembered", kFailed, ConnectRequested{}, kFailed, {}},
      {"backoff, connected after all", kFailed, connected(2), kFailed, 2},
      {"backoff, failed twice", kFailed, refused(2), kFailed, {}},
      {"backoff, closed late", kFailed, closed(2), kFailed, {}},
      {"backoff, elapsed", kFailed, current, kIdle, {}},
      {"backoff, timer late", kFailed, stale, kFailed, {}},
  };
  for (const Row& row : rows) {
    DYNAMIC_SECTION(row.when) {
      SubchannelCore core = in_state(row.from);
      REQUIRE(core.state() == row.from);
      const SubchannelEffects effects = core.step(row.event, kLater);
      CHECK(core.state() == row.to);

      // B1 of subchannel_core.hpp: the state is told exactly when it has changed.
      const auto told = all<NotifyState>(effects);
      REQUIRE(told.size() == (row.from == row.to ? 0 : 1));
      if (!told.empty()) {
        const SubchannelStateChanged& state = told.front().state;
        CHECK(state.address == Address{"10.0.0.1:80"});
        CHECK(state.state == row.to);
        CHECK((state.connection != nullptr) == (row.to == kReady));
        CHECK(state.status.ok() == (row.to != kFailed));
        CHECK(state.healthy);
      }
      // B3 of subchannel_core.hpp: a connection is dropped once, when it closes or is not awaited
      // any more.
      const auto drops = all<DropConnection>(effects);
      REQUIRE(drops.size() == (row.dropped.has_value() ? 1 : 0));
      if (row.dropped.has_value()) CHECK(drops.front().attempt == *row.dropped);
    }
  }
}

TEST_CASE("subchannel: each attempt has a number and the cluster's time-out", "[lb][subchannel]") {
  SubchannelCore core(options());
  const auto first = all<OpenConnection>(core.step(ConnectRequested{}, {}));
  REQUIRE(first.size() == 1);
  CHECK(first.front().attempt == 1);
  CHECK(first.front().timeout == seconds(7));
  core.step(connected(1), {});
  core.step(closed(1), {});
  CHECK(all<OpenConnection>(core.step(ConnectRequested{}, {})).front().attempt == 2);
}

TEST_CASE("subchannel: attempts and losses are observed under the cluster", "[lb][subchannel]") {
  const ClusterName cluster{"orders"};
  const auto seen = [](const SubchannelEffects& effects) {
    const auto observed = all<Observe>(effects);
    REQUIRE(observed.size() == 1);
    return observed.front().observation;
  };
  SubchannelCore core(options());
  core.step(ConnectRequested{}, {});
  CHECK(seen(core.step(refused(1), {})) == Observation{ConnectionAttempted{cluster, false}});
  core.step(TimerFired{{"backoff", 1}}, {});
  core.step(ConnectRequested{}, {});
  CHECK(seen(core.step(connected(2), {})) == Observation{ConnectionAttempted{cluster, true}});
  CHECK(seen(core.step(closed(2), {})) == Observation{ConnectionLost{cluster, "connection reset"}});
}

TEST_CASE("subchannel: an attempt that fails without a reason is reported with one",
          "[lb][subchannel]") {
  SubchannelCore core(options());
  core.step(ConnectRequested{}, {});
  const auto told = all<NotifyState>(core.step(ConnectFailed{1, absl::OkStatus()}, {}));
  REQUIRE(told.size() == 1);
  CHECK(told.front().state.status == absl::UnavailableError("connection attempt failed"));
}

// Fails one attempt, begun and ended at `now`. Ends the back-off after it, and returns its length.
Duration fail_once(SubchannelCore& core, Instant now, bool may_hurry = false) {
  const std::uint64_t attempt =
      all<OpenConnection>(core.step(ConnectRequested{may_hurry}, now)).front().attempt;
  const auto timers = all<StartTimer>(core.step(refused(attempt), now));
  REQUIRE(timers.size() == 1);
  core.step(TimerFired{timers.front().timer}, now + timers.front().delay);
  REQUIRE(core.state() == kIdle);
  return timers.front().delay;
}

TEST_CASE("subchannel: back-off grows by 1.6 from 1 s to 120 s, within 20 %",
          "[lb][subchannel][backoff]") {
  bool below = false;
  bool above = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SubchannelCore core(options(seed));
    double expected = 1.0;
    for (int failure = 0; failure < 15; ++failure) {
      const double delay = std::chrono::duration<double>(fail_once(core, {})).count();
      CHECK(delay >= 0.8 * expected - 1e-6);
      CHECK(delay <= 1.2 * expected + 1e-6);
      below = below || delay < 0.85 * expected;
      above = above || delay > 1.15 * expected;
      expected = std::min(120.0, expected * 1.6);
    }
    CHECK(expected == 120.0);
  }
  CHECK(below);
  CHECK(above);
}

TEST_CASE("subchannel: a connection starts the back-off anew", "[lb][subchannel][backoff]") {
  SubchannelCore core(options());
  for (int failure = 0; failure < 6; ++failure)
    fail_once(core, {});
  const std::uint64_t attempt =
      all<OpenConnection>(core.step(ConnectRequested{}, {})).front().attempt;
  core.step(connected(attempt), {});
  core.step(closed(attempt), {});
  CHECK(fail_once(core, {}) <= milliseconds(1200));
}

SubchannelOptions without_jitter() {
  SubchannelOptions exact = options();
  exact.backoff.jitter = 0;
  return exact;
}

// A subchannel that has lost its connection.
SubchannelCore lost(SubchannelOptions options) {
  SubchannelCore core(std::move(options));
  core.step(ConnectRequested{}, {});
  core.step(connected(1), {});
  core.step(closed(1), {});
  return core;
}

TEST_CASE("subchannel: who has been READY is asked again sooner, while few fail",
          "[lb][subchannel][backoff]") {
  struct Row {
    const char* when;
    bool was_ready;
    std::vector<bool> may_hurry;      // One value an attempt; each attempt fails.
    std::vector<milliseconds> waits;  // The back-off after each attempt.
  };

  const bool yes = true;
  const bool no = false;
  const std::vector<Row> rows{
      {"lost, few fail", true, {yes, yes, yes}, {200ms, 260ms, 338ms}},
      {"lost, many fail", true, {no, no, no}, {1000ms, 1600ms, 2560ms}},
      {"never answered, few fail", false, {yes, yes, yes}, {1000ms, 1600ms, 2560ms}},
      {"lost, more and more fail", true, {yes, yes, no, no}, {200ms, 260ms, 1000ms, 1600ms}},
      {"lost, fewer and fewer fail", true, {no, yes, yes}, {1000ms, 1300ms, 1690ms}},
  };
  for (const Row& row : rows) {
    DYNAMIC_SECTION(row.when) {
      SubchannelCore core =
          row.was_ready ? lost(without_jitter()) : SubchannelCore(without_jitter());
      for (std::size_t i = 0; i < row.waits.size(); ++i) {
        CAPTURE(i);
        CHECK(fail_once(core, {}, row.may_hurry[i]) == row.waits[i]);
      }
    }
  }
}

TEST_CASE("subchannel: in a hurry too, the back-off ends at its greatest, and is spread",
          "[lb][subchannel][backoff]") {
  SubchannelOptions spread = options();
  spread.backoff.max = seconds(2);
  SubchannelCore core = lost(spread);
  std::set<Duration> waits;
  for (int failure = 0; failure < 30; ++failure)
    waits.insert(fail_once(core, {}, true));
  CHECK(waits.size() == 30);
  CHECK(*waits.begin() >= milliseconds(160));
  CHECK(*waits.rbegin() > milliseconds(2000));
  CHECK(*waits.rbegin() <= milliseconds(2400));
}

TEST_CASE("subchannel: nobody hurries whose first back-off would be no shorter",
          "[lb][subchannel][backoff]") {
  SubchannelOptions same = without_jitter();
  same.lost_backoff = same.backoff.initial;
  SubchannelCore core = lost(same);
  CHECK(fail_once(core, {}, true) == milliseconds(1000));
  CHECK(fail_once(core, {}, true) == milliseconds(1600));
}

TEST_CASE("subchannel: a connection starts the sooner back-off anew", "[lb][subchannel][backoff]") {
  SubchannelCore core = lost(without_jitter());
  for (int failure = 0; failure < 6; ++failure)
    fail_once(core, {}, true);
  const std::uint64_t attempt =
      all<OpenConnection>(core.step(ConnectRequested{true}, {})).front().attempt;
  core.step(connected(attempt), {});
  core.step(closed(attempt), {});
  CHECK(fail_once(core, {}, true) == milliseconds(200));
}

TEST_CASE("subchannel: a server that ends its connections at once is asked with pauses",
          "[lb][subchannel][backoff]") {
  SubchannelCore core(without_jitter());
  Instant now{};
  std::uint64_t attempt = 0;
  // The next connection, which ends after `life`. Returns the back-off that follows; none: 0.
  const auto live = [&](Duration life) {
    const auto begun = all<OpenConnection>(core.step(ConnectRequested{}, now));
    REQUIRE(begun.size() == 1);
    attempt = begun.front().attempt;
    core.step(connected(attempt), now);
    now += life;
    const auto timers = all<StartTimer>(core.step(closed(attempt), now));
    if (timers.empty()) {
      CHECK(core.state() == kIdle);
      return Duration::zero();
    }
    CHECK(core.state() == kFailed);
    CHECK(core.step(ConnectRequested{}, now).empty());
    now += timers.front().delay;
    core.step(TimerFired{timers.front().timer}, now);
    CHECK(core.state() == kIdle);
    return timers.front().delay;
  };
  CHECK(live(0s) == 0s);  // A server that is restarted just then.
  CHECK(live(100ms) == 900ms);
  CHECK(live(0s) == 1600ms);
  CHECK(live(2559ms) == 1ms);
  SECTION("also a connection that came late, when its back-off was over") {
    const auto begun = all<OpenConnection>(core.step(ConnectRequested{}, now));
    REQUIRE(begun.size() == 1);
    now += 5s;
    core.step(connected(begun.front().attempt), now);
    const auto timers = all<StartTimer>(core.step(closed(begun.front().attempt), now));
    REQUIRE(timers.size() == 1);
    CHECK(timers.front().delay == 0s);
    core.step(TimerFired{timers.front().timer}, now);
    CHECK(live(0s) == 6553600us);
  }
  SECTION("a connection that lives longer begins anew") {
    CHECK(live(4096ms) == 0s);
    CHECK(live(0s) == 0s);
    CHECK(live(0s) == 1s);
  }
  SECTION("so does an attempt that fails") {
    CHECK(fail_once(core, now) == 4096ms);
    now += 4096ms;
    CHECK(live(0s) == 0s);
    CHECK(live(0s) == 1s);
  }
}

TEST_CASE("subchannel: back-off counts from the beginning of the attempt",
          "[lb][subchannel][backoff]") {
  const Instant start{};

  struct Row {
    milliseconds attempt_took;
    milliseconds rest;
  };

  const auto row = GENERATE(values<Row>({
      {milliseconds(0), milliseconds(1000)},
      {milliseconds(300), milliseconds(700)},
      {milliseconds(1000), milliseconds(0)},
      {milliseconds(7000), milliseconds(0)},
  }));
  SubchannelCore core(without_jitter());
  core.step(ConnectRequested{}, start);
  const auto timers = all<StartTimer>(core.step(refused(1), start + row.attempt_took));
  REQUIRE(timers.size() == 1);
  CHECK(timers.front().delay == row.rest);
  CHECK(core.state() == kFailed);  // The failure is told even if no back-off is left.
}

TEST_CASE("subchannel: two of one seed are equal, of two seeds are not", "[lb][subchannel]") {
  SubchannelCore one(options(5));
  SubchannelCore same(options(5));
  SubchannelCore other(options(6));
  const Duration delay = fail_once(one, {});
  CHECK(delay == fail_once(same, {}));
  CHECK(delay != fail_once(other, {}));
}

// B3 of subchannel_core.hpp in random histories: each connection is dropped once. A connection that
// makes the subchannel READY is not dropped before it closes.
TEST_CASE("subchannel: every connection is dropped exactly once", "[lb][subchannel]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SubchannelCore core(options(seed));
    std::map<std::uint64_t, int> drops;
    std::set<std::uint64_t> opened;
    std::uint64_t newest = 0;
    std::uint64_t step = 0;
    const auto chance = [&](std::uint64_t bound) {
      return draw_below(seed, Salt::kRouteFraction, bound, ++step);
    };
    const auto feed = [&](const SubchannelEvent& event) {
      const SubchannelEffects effects = core.step(event, {});
      for (const OpenConnection& open : all<OpenConnection>(effects))
        newest = open.attempt;
      for (const DropConnection& drop : all<DropConnection>(effects))
        ++drops[drop.attempt];
    };
    for (int event = 0; event < 200; ++event) {
      const std::uint64_t attempt = newest - (newest > 0 ? chance(2) : 0);
      switch (chance(5)) {
        case 0:
          feed(ConnectRequested{});
          break;
        case 1:
          if (attempt > 0 && opened.insert(attempt).second) feed(connected(attempt));
          break;
        case 2:
          if (!opened.contains(attempt)) feed(refused(attempt));
          break;
        case 3:
          feed(closed(attempt));
          break;
        default:
          feed(TimerFired{{"backoff", attempt}});
      }
      for (const std::uint64_t number : opened) {
        const bool alive = core.state() == kReady && number == newest;
        CHECK(drops[number] == (alive ? 0 : 1));
      }
    }
  }
}

}  // namespace
}  // namespace signalbox::lb::subchannel_core_test
