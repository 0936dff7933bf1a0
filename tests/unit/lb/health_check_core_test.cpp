// SPDX-License-Identifier: Apache-2.0
//
// The draws and limits of health checks, the answers that are ignored, and observed probes.
// tests/spec/health_checks_test has thresholds and verdicts.
#include "lb/subchannel/health_check_core.hpp"

#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/lb/health_check_harness.hpp"

namespace signalbox::lb {
namespace {

using namespace std::chrono_literals;

TEST_CASE("health_check: probes begin after the initial jitter, and an interval apart",
          "[lb][health_check]") {
  HealthCheck check = some_check();
  SECTION("without jitter at once, and exactly") {
    CheckHarness checked({check});
    CHECK(checked.probing[0].has_value());
    checked.answer(ProbeOutcome::kPassed);
    CHECK(checked.timers[0]->delay == 5s);
  }
  SECTION("with jitter within its bounds, and evenly") {
    check.initial_jitter = 10s;
    check.interval_jitter = 2s;
    check.interval_jitter_percent = 20;
    std::set<Duration> first;
    std::set<Duration> pauses;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      CheckHarness checked({check}, seed);
      CHECK_FALSE(checked.probing[0].has_value());
      first.insert(checked.timers[0]->delay);
      checked.fire();
      checked.answer(ProbeOutcome::kPassed);
      pauses.insert(checked.timers[0]->delay);
    }
    CHECK(*first.begin() >= 0s);
    CHECK(*first.begin() < 1s);
    CHECK(*first.rbegin() <= 10s);
    CHECK(*first.rbegin() > 9s);
    CHECK(*pauses.begin() >= 5s);
    CHECK(*pauses.begin() < 5500ms);
    CHECK(*pauses.rbegin() <= 8s);
    CHECK(*pauses.rbegin() > 7500ms);
  }
  SECTION("by the same seed the same") {
    check.interval_jitter = 2s;
    CheckHarness one({check}, 3);
    CheckHarness other({check}, 3);
    one.answer(ProbeOutcome::kPassed);
    other.answer(ProbeOutcome::kPassed);
    CHECK(one.timers[0]->delay == other.timers[0]->delay);
    const Duration before = one.timers[0]->delay;
    one.fire();
    one.answer(ProbeOutcome::kPassed);
    CHECK(one.timers[0]->delay != before);
  }
  SECTION("with a floor and a ceiling") {
    check.interval = 1ns;
    CheckHarness hasty({check});
    hasty.answer(ProbeOutcome::kFailed);
    CHECK(hasty.timers[0]->delay == HealthCheckCore::kShortestPause);
    check.interval = check.interval_jitter = check.initial_jitter = std::chrono::hours(876'600);
    check.interval_jitter_percent = 100;
    CheckHarness slow({check});
    CHECK(slow.timers[0]->delay <= HealthCheckCore::kLongestPause);
    slow.fire();
    slow.answer(ProbeOutcome::kFailed);
    CHECK(slow.timers[0]->delay == HealthCheckCore::kLongestPause);
  }
}

TEST_CASE("health_check: late answers and late timers mean nothing", "[lb][health_check]") {
  CheckHarness checked({some_check()});
  const std::uint64_t number = *checked.probing[0];
  checked.answer(ProbeOutcome::kPassed);
  const StartTimer timer = *checked.timers[0];
  const auto step = [&](const HealthCheckEvent& event) {
    return checked.core().step(event, Instant{}).size();
  };
  CHECK(step(ProbeEnded{0, number, ProbeOutcome::kFailed, "late", false}) == 0);
  CHECK(step(ProbeEnded{1, number, ProbeOutcome::kFailed, "of none", false}) == 0);
  CHECK(step(TimerFired{{timer.timer.name, timer.timer.generation - 1}}) == 0);
  CHECK(step(TimerFired{{"1", timer.timer.generation}}) == 0);
  CHECK(step(TimerFired{{"no number", timer.timer.generation}}) == 0);
  checked.fire();
  CHECK(step(TimerFired{timer.timer}) == 0);  // The check is probing.
  // A late answer to an earlier probe is not taken for the answer of the running probe.
  CHECK(step(ProbeEnded{0, number, ProbeOutcome::kFailed, "later still", false}) == 0);
  REQUIRE(checked.probing[0].has_value());
  CHECK(*checked.probing[0] != number);
  checked.answer(ProbeOutcome::kPassed);
  CHECK(checked.reports == std::vector<absl::Status>{absl::OkStatus()});
  CHECK(checked.timers[0].has_value());
}

TEST_CASE("health_check: a probe that could not be made says nothing", "[lb][health_check]") {
  CheckHarness checked({some_check()});
  checked.answer(ProbeOutcome::kUndone);
  CHECK(checked.reports.empty());
  CHECK(checked.observations.empty());
  checked.fire();
  checked.answer(ProbeOutcome::kPassed);
  checked.fire();
  checked.answer(ProbeOutcome::kUndone);
  CHECK(checked.reports == std::vector<absl::Status>{absl::OkStatus()});
  CHECK(checked.timers[0].has_value());
}

TEST_CASE("health_check: what is observed of a probe is how it ended", "[lb][health_check]") {
  CheckHarness checked({some_check()});
  checked.take(checked.core().step(
      ProbeEnded{0, *checked.probing[0], ProbeOutcome::kRefused, "no", true}, Instant{}));
  CHECK(checked.observations ==
        std::vector<HealthProbed>{HealthProbed{ClusterName("orders"), false, true}});
}

}  // namespace
}  // namespace signalbox::lb
