// SPDX-License-Identifier: Apache-2.0
//
// outlier_rules — which endpoints are outliers, which outliers are ejected, and for how long. Pure
// functions.
//
//   CallTally of each endpoint ─▶ success_rate_outliers ──────┐
//                              └▶ failure_percentage_outliers ┴▶ detect_outliers ─▶ Detection
//
// Counts are 64-bit integers, and percentages are compared without dividing. Rates, their mean and
// their deviation are doubles. Functions name an endpoint by its index in the list of tallies.
//
// Source: gRFC A50 (algorithms), A91 (their metrics). A50's text allows one ejection more than its
// own comment on max_ejection_percent; may_eject() does what all gRPC implementations do.
// minimum_hosts follows A50's algorithms since 2022, not A50's older comment on the field.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

#include "messages/cluster_settings.hpp"
#include "messages/observation.hpp"

namespace signalbox::lb {

/// The calls of one endpoint in the interval that has ended.
struct CallTally {
  std::uint64_t successes = 0;
  std::uint64_t failures = 0;
  bool ejected = false;  ///< The endpoint is ejected already.

  std::uint64_t volume() const { return successes + failures; }
};

/// The endpoints with a success rate below mean - stdev_factor / 1000 × standard deviation. Mean
/// and deviation are over the counted endpoints: those with at least request_volume calls, and at
/// least one. There are no outliers while fewer than minimum_hosts endpoints are counted.
std::vector<std::size_t> success_rate_outliers(const OutlierDetection::SuccessRate& settings,
                                               const std::vector<CallTally>& tallies);

/// The endpoints that failed more than threshold_percent of their calls. As in
/// success_rate_outliers(), only endpoints with at least request_volume calls count, and there are
/// no outliers while fewer than minimum_hosts count.
std::vector<std::size_t> failure_percentage_outliers(
    const OutlierDetection::FailurePercentage& settings, const std::vector<CallTally>& tallies);

/// Whether one more endpoint may be ejected when `ejected` of `endpoints` are. True if none is
/// ejected, or if the ejected share is below `max_percent`. So an ejection never raises the number
/// above max(1, ⌈max_percent of `endpoints`⌉).
bool may_eject(std::size_t ejected, std::size_t endpoints, std::uint32_t max_percent);

/// How long an endpoint stays ejected: its multiplier times the base time, up to the maximum or the
/// base time, whichever is longer.
Duration ejection_time(const OutlierDetection& settings, std::uint32_t multiplier);

/// A new outlier, and whether it was ejected or why not.
struct Detection {
  std::size_t endpoint = 0;
  DetectionMethod method = DetectionMethod::kSuccessRate;
  DetectionOutcome outcome = DetectionOutcome::kEjected;

  friend bool operator==(const Detection&, const Detection&) = default;
};

/// Runs the configured algorithms, success rate first. `draw` gives a number in [0, 100) for each
/// outlier that may be ejected. If the first algorithm finds an outlier but does not eject it, the
/// second may eject it.
std::vector<Detection> detect_outliers(const OutlierDetection& settings,
                                       std::vector<CallTally> tallies,
                                       absl::FunctionRef<std::uint64_t()> draw);

}  // namespace signalbox::lb
