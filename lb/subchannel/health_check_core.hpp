// SPDX-License-Identifier: Apache-2.0
//
// health_check_core — when one address is probed, and the result of its health checks.
//
//   health_checker ─▶ HealthChecksBegun ─▶ [HealthCheckCore] ─▶ StartProbe ─▶ prober
//                     ProbeEnded ─────────▶                  ─▶ ReportHealth ─▶ subchannel map
//
//   of each check:          passed                       healthy_threshold passed in turn
//              Unknown ───────────────▶ Fit ◀──────────────────────────────────────── Unfit
//                 │                      └── refused; unhealthy_threshold failed in turn ─▶
//                 └── failed, refused ─────────────────────────────────────────────────▶
//
// Invariants
//   K1  The first probe of a check decides at once, whatever the thresholds. Until then the verdict
//       is unknown, and the endpoint counts as fit.
//   K2  The endpoint is fit while no check finds it unfit; the first check that does gives the
//       reason. The result is told when it is first known, and each time that it changes.
//   K3  A check has at most one probe under way. The next probe begins an interval after the last
//       one ended, and up to interval_jitter and up to interval_jitter_percent of the interval
//       later. The first probe begins within initial_jitter of the beginning.
//   K4  Whatever is configured, no pause between probes is shorter than kShortestPause, and none is
//       longer than kLongestPause: a clock can represent any sum of times.
//   K5  A probe that could not be made says nothing.
//   K6  A late answer and a late timer mean nothing.
//
// Source: Envoy's health checking, except for K1 (in Envoy an endpoint that was not probed gets no
// calls) and for Envoy's intervals for edges and for clusters without traffic, which are not used.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/subchannel_events.hpp"

namespace signalbox::lb {

struct HealthCheckOptions {
  ClusterName cluster;     ///< The label of observations.
  HealthChecksPtr checks;  ///< Neither null nor empty.
  std::uint64_t seed = 0;  ///< The source of all its draws.
};

class HealthCheckCore {
 public:
  static constexpr Duration kShortestPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::hours(24);

  explicit HealthCheckCore(HealthCheckOptions options);

  HealthCheckEffects step(const HealthCheckEvent& event, Instant now);

 private:
  enum class Verdict : std::uint8_t { kUnknown, kFit, kUnfit };

  /// The state of one check.
  struct Course {
    Verdict verdict = Verdict::kUnknown;
    std::uint32_t against = 0;  ///< Probes in a row that spoke against the verdict.
    std::string why;            ///< The reason why it is unfit.
    std::uint64_t number = 0;   ///< The number of the last timer, and of the probe after it.
    bool is_probing = false;
  };

  void on(const HealthChecksBegun& event, HealthCheckEffects& effects);
  void on(const ProbeEnded& event, HealthCheckEffects& effects);
  void on(const TimerFired& event, HealthCheckEffects& effects);

  void judge(const ProbeEnded& event, HealthCheckEffects& effects);
  void wait(std::size_t check, Duration pause, HealthCheckEffects& effects);
  void probe(std::size_t check, HealthCheckEffects& effects);
  Duration up_to(Duration most, std::size_t check, std::uint64_t which) const;
  Duration pause_of(std::size_t check) const;
  void report(HealthCheckEffects& effects);

  HealthCheckOptions options_;
  std::vector<Course> courses_;  ///< By check.
  std::optional<absl::Status> reported_;
};

}  // namespace signalbox::lb
