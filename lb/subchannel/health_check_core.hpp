// SPDX-License-Identifier: Apache-2.0
//
// health_check_core — when one address is probed, and what its health checks make of it.
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
//   K1  The first probe of a check decides at once, whatever the thresholds. Until then it is
//       unknown, and the endpoint fit for all that is known.
//   K2  The endpoint is fit while no check finds it unfit; the first that does says why. The first
//       time that it is known, and each time that it changes, it is told.
//   K3  Of a check at most one probe is under way. The next begins an interval after it ended, and
//       up to interval_jitter and up to interval_jitter_percent of the interval later; the first
//       within initial_jitter of the beginning.
//   K4  Whatever is configured, no pause between probes is shorter than kShortestPause, and none
//       is longer than kLongestPause: any sum of times can be told to a clock.
//   K5  A probe that could not be made says nothing.
//   K6  A late answer and a late timer mean nothing.
//
// Source: Envoy's health checking, but for K1 (there, who has not been probed gets no calls) and
// the intervals that hold for edges and for clusters without traffic.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/subchannel_events.hpp"

namespace signalbox::lb {

struct HealthCheckOptions {
  ClusterName cluster;     ///< Label of what is observed.
  HealthChecksPtr checks;  ///< Neither null nor empty.
  std::uint64_t seed = 0;  ///< All of its chance.
};

class HealthCheckCore {
 public:
  static constexpr Duration kShortestPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::hours(24);

  explicit HealthCheckCore(HealthCheckOptions options);

  HealthCheckEffects step(const HealthCheckEvent& event, Instant now);

 private:
  enum class Verdict : std::uint8_t { kUnknown, kFit, kUnfit };

  /// Of one check.
  struct Course {
    Verdict verdict = Verdict::kUnknown;
    std::uint32_t against = 0;  ///< Probes in turn that spoke against the verdict.
    std::string why;            ///< It is unfit.
    std::uint64_t number = 0;   ///< Of the last timer, and of the probe behind it.
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
