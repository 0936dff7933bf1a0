// SPDX-License-Identifier: Apache-2.0
//
// Health checks as tables: the result of each probe, and the endpoint's health after it.
#include "lb/subchannel/health_check_core.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

using namespace std::chrono_literals;

HealthCheck some_check(std::uint32_t unhealthy = 1, std::uint32_t healthy = 1) {
  return {.probe = HealthCheck::Tcp{},
          .timeout = 1s,
          .interval = 5s,
          .unhealthy_threshold = unhealthy,
          .healthy_threshold = healthy};
}

/// Answers the probes that the core orders, as fast as it orders them.
class CheckHarness {
 public:
  explicit CheckHarness(std::vector<HealthCheck> checks, std::uint64_t seed = 7)
      : probing(checks.size()), timers(checks.size()), core_(options(std::move(checks), seed)) {
    take(core_.step(HealthChecksBegun{}, Instant{}));
  }

  void take(const HealthCheckEffects& effects) {
    for (const HealthCheckEffect& effect : effects) {
      if (const auto* start = std::get_if<StartProbe>(&effect)) {
        CHECK_FALSE(probing.at(start->check).has_value());  // K3
        probing[start->check] = start->number;
      }
      if (const auto* timer = std::get_if<StartTimer>(&effect))
        timers.at(static_cast<std::size_t>(std::stoi(timer->timer.name))) = *timer;
      if (const auto* report = std::get_if<ReportHealth>(&effect))
        reports.push_back(report->status);
      if (const auto* observed = std::get_if<Observe>(&effect))
        observations.push_back(std::get<HealthProbed>(observed->observation));
    }
  }

  void answer(ProbeOutcome outcome, std::size_t check = 0, const std::string& why = "no") {
    REQUIRE(probing.at(check).has_value());
    const std::uint64_t number = *std::exchange(probing[check], std::nullopt);
    take(core_.step(ProbeEnded{check, number, outcome, why, false}, Instant{}));
  }

  void fire(std::size_t check = 0) {
    REQUIRE(timers.at(check).has_value());
    const TimerId timer = std::exchange(timers[check], std::nullopt)->timer;
    take(core_.step(TimerFired{timer}, Instant{}));
  }

  HealthCheckCore& core() { return core_; }

  std::vector<std::optional<std::uint64_t>> probing;  ///< By check: the number under way.
  std::vector<std::optional<StartTimer>> timers;      ///< By check.
  std::vector<absl::Status> reports;
  std::vector<HealthProbed> observations;

 private:
  static HealthCheckOptions options(std::vector<HealthCheck> checks, std::uint64_t seed) {
    return {ClusterName("orders"),
            std::make_shared<const std::vector<HealthCheck>>(std::move(checks)),
            seed};
  }

  HealthCheckCore core_;
};

TEST_CASE("health_check: thresholds count in turn, and the first probe decides at once",
          "[lb][health_check]") {
  struct Row {
    const char* what;
    std::uint32_t unhealthy;
    std::uint32_t healthy;
    std::string probes;    ///< + passed, - failed, ! refused.
    std::string endpoint;  ///< After each: + fit, - unfit.
  };

  const auto row = GENERATE(values<Row>({
      {"the first passes", 3, 3, "+", "+"},
      {"the first fails", 3, 3, "-", "-"},
      {"so many in turn", 3, 1, "+--+---", "++++++-"},
      {"one is enough", 1, 1, "+-+-+", "+-+-+"},
      {"so many to come back", 1, 3, "-++-+++", "------+"},
      {"thresholds begin anew", 2, 2, "+--++--", "++--++-"},
      {"what refuses needs no threshold", 3, 1, "+-!", "++-"},
      {"refused at first", 3, 2, "!++", "--+"},
      {"refused while unfit", 1, 2, "-+!++", "----+"},
  }));
  DYNAMIC_SECTION(row.what) {
    CheckHarness checked({some_check(row.unhealthy, row.healthy)});
    std::string endpoint;
    for (const char probe : row.probes) {
      if (!endpoint.empty()) checked.fire();
      checked.answer(probe == '+'   ? ProbeOutcome::kPassed
                     : probe == '-' ? ProbeOutcome::kFailed
                                    : ProbeOutcome::kRefused);
      REQUIRE_FALSE(checked.reports.empty());
      endpoint += checked.reports.back().ok() ? '+' : '-';
    }
    CHECK(endpoint == row.endpoint);
    // Told the first time, and when it changes.
    const auto changes = std::ranges::count_if(
        row.endpoint, [last = '?'](char now) mutable { return std::exchange(last, now) != now; });
    CHECK(static_cast<std::ptrdiff_t>(checked.reports.size()) == changes);
    CHECK(checked.observations.size() == row.probes.size());
  }
}

TEST_CASE("health_check: an endpoint has to pass all checks", "[lb][health_check]") {
  CheckHarness checked({some_check(), some_check()});
  checked.answer(ProbeOutcome::kPassed, 1);
  CHECK(checked.reports.empty());  // The other is unknown.
  checked.answer(ProbeOutcome::kPassed, 0);
  CHECK(checked.reports == std::vector<absl::Status>{absl::OkStatus()});
  checked.fire(1);
  checked.answer(ProbeOutcome::kFailed, 1, "refused");
  CHECK(checked.reports.back() == absl::UnavailableError("health check failed: refused"));
  checked.fire(0);
  checked.answer(ProbeOutcome::kFailed, 0, "reset");
  checked.fire(1);
  checked.answer(ProbeOutcome::kPassed, 1);
  CHECK(checked.reports.size() == 2);  // Unfit all the time.
  checked.fire(0);
  checked.answer(ProbeOutcome::kPassed, 0);
  CHECK(checked.reports.back().ok());
}

TEST_CASE("health_check: one that fails is enough before the others are known",
          "[lb][health_check]") {
  CheckHarness checked({some_check(), some_check()});
  checked.answer(ProbeOutcome::kFailed, 1);
  REQUIRE(checked.reports.size() == 1);
  CHECK_FALSE(checked.reports.front().ok());
}

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
  CHECK(step(ProbeEnded{5, number, ProbeOutcome::kFailed, "of none", false}) == 0);
  CHECK(step(TimerFired{{timer.timer.name, timer.timer.generation - 1}}) == 0);
  CHECK(step(TimerFired{{"5", timer.timer.generation}}) == 0);
  CHECK(step(TimerFired{{"no number", timer.timer.generation}}) == 0);
  checked.fire();
  CHECK(step(TimerFired{timer.timer}) == 0);  // While it probes.
  // Nor is it taken for the answer of the probe under way.
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
