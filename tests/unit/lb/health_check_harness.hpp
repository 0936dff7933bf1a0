// SPDX-License-Identifier: Apache-2.0
//
// CheckHarness — the health checks of one endpoint. The test answers the probes and fires the
// timers.
//
//   checks ─▶ [HealthCheckCore] ─▶ probing, timers, reports, observations

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/subchannel/health_check_core.hpp"

namespace signalbox::lb {

inline HealthCheck some_check(std::uint32_t unhealthy = 1, std::uint32_t healthy = 1) {
  return {.probe = HealthCheck::Tcp{},
          .timeout = std::chrono::seconds(1),
          .interval = std::chrono::seconds(5),
          .unhealthy_threshold = unhealthy,
          .healthy_threshold = healthy};
}

/// Keeps the probes that the core starts until the test answers them, and its timers until the test
/// fires them.
class CheckHarness {
 public:
  explicit CheckHarness(std::vector<HealthCheck> checks, std::uint64_t seed = 7)
      : probing(checks.size()), timers(checks.size()), core_(options(std::move(checks), seed)) {
    take(core_.step(HealthChecksBegun{}, Instant{}));
  }

  void take(const HealthCheckEffects& effects) {
    for (const HealthCheckEffect& effect : effects) {
      if (const auto* start = std::get_if<StartProbe>(&effect)) {
        // K3 of health_check_core.hpp: a check has at most one probe under way.
        CHECK_FALSE(probing.at(start->check).has_value());
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

  std::vector<std::optional<std::uint64_t>> probing;  ///< By check: the running probe's number.
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

}  // namespace signalbox::lb
