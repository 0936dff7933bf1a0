// SPDX-License-Identifier: Apache-2.0
//
// health_check_core — decides when one address is probed, and whether the address is healthy.
//
//   health_checker ─▶ HealthChecksBegun ─▶ [HealthCheckCore] ─▶ StartProbe ─▶ prober
//                     ProbeEnded ─────────▶                  ─▶ ReportHealth ─▶ subchannel map
//
//   of each check:          passed                       healthy_threshold passed in a row
//              Unknown ───────────────▶ Fit ◀──────────────────────────────────────── Unfit
//                 │                      └─ refused; unhealthy_threshold failed in a row ─▶
//                 └── failed, refused ─────────────────────────────────────────────────▶
//
// Invariants
//   K1  The first probe of a check decides the check's verdict alone, whatever the thresholds.
//       Until then the verdict is unknown, and the endpoint counts as fit.
//   K2  The endpoint is unfit while any check finds it unfit; the first such check, in the
//       configured order, gives the reason. ReportHealth is returned when every check has a verdict
//       or one check finds the endpoint unfit, and then each time that the endpoint becomes fit or
//       unfit. As long as a check has no verdict, no ReportHealth says that the endpoint is fit. A
//       new reason alone is not reported.
//   K3  A check has at most one probe under way. When a probe ends, a pause begins: the interval,
//       plus a random time up to interval_jitter, plus a random time up to interval_jitter_percent
//       of the interval. The next probe begins after the pause. The first probe begins within
//       initial_jitter of HealthChecksBegun.
//   K4  Whatever is configured, a pause is not shorter than kShortestPause, and not longer than
//       kLongestPause, so that sums of times do not overflow.
//   K5  A probe without a result (ProbeOutcome::kUndone) changes no verdict.
//   K6  The answer of an earlier probe is ignored, and so is a timer that was replaced.
//
// Source: Envoy's health checking, with two differences. In Envoy an endpoint gets no calls before
// its first probe (K1). Envoy's further intervals (after a change of health, and for clusters
// without traffic) are not used.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/subchannel_events.hpp"

namespace signalbox::lb {

struct HealthCheckOptions {
  ClusterName cluster;     ///< The label of the metrics.
  HealthChecksPtr checks;  ///< Neither null nor empty.
  std::uint64_t seed = 0;  ///< The source of all random numbers of the core.
};

class HealthCheckCore {
 public:
  static constexpr Duration kShortestPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::hours(24);

  explicit HealthCheckCore(HealthCheckOptions options);

  HealthCheckEffects step(const HealthCheckEvent& event, Instant now);

 private:
  enum class Verdict : std::uint8_t { kUnknown, kFit, kUnfit };

  /// The state of one check, and its newest timer or probe.
  struct Course {
    Verdict verdict = Verdict::kUnknown;
    std::uint32_t against = 0;  ///< How many newest probes in a row contradict the verdict.
    std::string why;            ///< Why the verdict is kUnfit.
    std::uint64_t number = 0;  ///< The number of the newest timer, and of the probe that it starts.
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
  std::vector<Course> courses_;  ///< One for each of the checks.
  std::optional<absl::Status> reported_;
};

}  // namespace signalbox::lb
