// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/sweep.hpp"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

using namespace std::chrono_literals;

/// A SweepCore in virtual time. If `answers`, each sweep is answered at once, else when the test
/// calls answer(). An answer says that the next endpoint may become idle after `next`.
class Sweeper {
 public:
  void set(Duration idle_timeout) { run(core.step(IdleTimeoutSet{idle_timeout}, now)); }

  void answer() { run(core.step(SweepDone{now + next}, now)); }

  void pass(Duration time) {
    const Instant until = now + time;
    while (!timers.empty() && timers.begin()->first <= until) {
      const auto [due, timer] = *timers.begin();
      timers.erase(timers.begin());
      now = due;
      run(core.step(TimerFired{timer}, now));
    }
    now = until;
  }

  SweepCore core;
  Instant now{};
  Duration next = 1h;
  bool answers = true;
  std::vector<Duration> sweeps;  ///< When each sweep began, since the start.
  std::multimap<Instant, TimerId> timers;

 private:
  void run(const SweepEffects& effects) {
    for (const SweepEffect& effect : effects) {
      std::visit(Overloaded{
                     [&](const Sweep&) {
                       sweeps.push_back(now - Instant{});
                       if (answers) answer();
                     },
                     [&](const StartTimer& it) {
                       CHECK(it.delay >= Duration::zero());
                       timers.emplace(now + it.delay, it.timer);
                     },
                 },
                 effect);
    }
  }
};

using Times = std::vector<Duration>;

}  // namespace

TEST_CASE("sweep: first after the idle timeout, then when the map says", "[lb][sweep][A75-30]") {
  Sweeper sweeper;
  sweeper.set(60s);
  sweeper.next = 20s;
  sweeper.pass(59s);
  CHECK(sweeper.sweeps.empty());
  sweeper.pass(1s);
  CHECK(sweeper.sweeps == Times{60s});
  sweeper.pass(20s);
  CHECK(sweeper.sweeps == Times{60s, 80s});
  sweeper.next = 7s;
  sweeper.pass(35s);
  CHECK(sweeper.sweeps == Times{60s, 80s, 100s, 107s, 114s});
}

TEST_CASE("sweep: never more often than every five seconds", "[lb][sweep][A75-31][A75-21]") {
  Sweeper sweeper;
  SECTION("with an idle timeout of nothing") {
    sweeper.set(0s);
    sweeper.next = 0s;
    sweeper.pass(16s);
    CHECK(sweeper.sweeps == Times{5s, 10s, 15s});
  }
  SECTION("whatever the map says") {
    sweeper.set(10s);
    sweeper.next = -3s;
    sweeper.pass(16s);
    CHECK(sweeper.sweeps == Times{10s, 15s});
  }
  SECTION("and with updates between them") {
    sweeper.set(10s);
    sweeper.pass(12s);
    sweeper.set(0s);
    sweeper.pass(4s);
    CHECK(sweeper.sweeps == Times{10s});
    sweeper.pass(1s);
    CHECK(sweeper.sweeps == Times{10s, 17s});
  }
  SECTION("counted from when the map was asked, and at once where that is long ago") {
    sweeper.set(10s);
    sweeper.next = 0s;
    sweeper.answers = false;
    sweeper.pass(12s);
    sweeper.answer();
    sweeper.pass(2999ms);
    CHECK(sweeper.sweeps == Times{10s});
    sweeper.pass(1ms);
    CHECK(sweeper.sweeps == Times{10s, 15s});
    sweeper.pass(20s);
    sweeper.next = -30s;  // A late answer: the next sweep is overdue.
    sweeper.answer();
    sweeper.pass(0s);
    CHECK(sweeper.sweeps == Times{10s, 15s, 35s});
  }
}

TEST_CASE("sweep: an update brings the next one forward, and never pushes it back",
          "[lb][sweep][A75-32][D14]") {
  Sweeper sweeper;
  sweeper.set(60s);
  for (int i = 0; i < 59; ++i) {  // Updates every second do not put the sweep off.
    sweeper.pass(1s);
    sweeper.set(60s);
  }
  CHECK(sweeper.sweeps.empty());
  sweeper.pass(1s);
  CHECK(sweeper.sweeps == Times{60s});
  sweeper.pass(1s);
  SECTION("a shorter one counts from now on") {
    sweeper.set(20s);
    sweeper.pass(20s);
    CHECK(sweeper.sweeps == Times{60s, 81s});
    sweeper.pass(3600s);  // The replaced timer does nothing.
    CHECK(sweeper.sweeps == Times{60s, 81s, 3681s});
  }
  SECTION("a longer one does not") {
    sweeper.set(20s);
    sweeper.set(10h);
    sweeper.pass(20s);
    CHECK(sweeper.sweeps == Times{60s, 81s});
  }
  SECTION("while the map sweeps, its answer knows") {
    sweeper.answers = false;
    sweeper.pass(3600s);
    REQUIRE(sweeper.sweeps.size() == 2);
    sweeper.set(20s);
    sweeper.pass(100s);
    CHECK(sweeper.sweeps.size() == 2);
    sweeper.answer();
    CHECK(sweeper.timers.size() == 1);
  }
}

TEST_CASE("sweep: an answer that nobody asked for means nothing", "[lb][sweep]") {
  Sweeper sweeper;
  sweeper.answer();
  CHECK(sweeper.timers.empty());
  sweeper.set(60s);
  sweeper.next = 0s;
  sweeper.answer();
  sweeper.pass(59s);
  CHECK(sweeper.sweeps.empty());
  CHECK(sweeper.timers.size() == 1);
}

TEST_CASE("sweep: a timer sweeps once", "[lb][sweep]") {
  Sweeper sweeper;
  CHECK(sweeper.core.step(TimerFired{TimerId{"sweep", 0}}, sweeper.now).empty());
  sweeper.set(60s);
  REQUIRE(sweeper.timers.size() == 1);
  const TimerFired fired{sweeper.timers.begin()->second};
  CHECK(sweeper.core.step(fired, Instant(60s)).size() == 1);
  CHECK(sweeper.core.step(fired, Instant(61s)).empty());
}

TEST_CASE("sweep: the longest idle timeout is a day at a time", "[lb][sweep][A75-19]") {
  Sweeper sweeper;
  sweeper.set(Duration::max());
  REQUIRE(sweeper.timers.size() == 1);
  CHECK(sweeper.timers.begin()->first == Instant(24h));
  sweeper.answers = false;
  sweeper.pass(24h);
  const auto effects = sweeper.core.step(SweepDone{Instant::max()}, sweeper.now);
  REQUIRE(effects.size() == 1);
  CHECK(std::get<StartTimer>(effects[0]).delay == 24h);
}

}  // namespace signalbox::lb
