// SPDX-License-Identifier: Apache-2.0
//
// LoadReport — what an endpoint says about its own load (ORCA, gRFC A51).
//
//   stream of an endpoint ─▶ lb/pick/load_report ─▶ [LoadReport] ─▶ LoadListener::reported
//   Router::finished of the Pick API ─────────────▶ [LoadReport] ─▶ CallTracker::ended
//
// A report is valid only during the function call that passes it. 0 in any field but `metrics` is
// "not reported". Values from a stream are finite and not negative (is_load_value). Values from the
// Pick API are not checked: the parts that read them leave out those that are not.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"

namespace signalbox {

/// A value under a name of the endpoint's own choice.
struct LoadMetric {
  /// The map of the ORCA report that contains the value.
  enum class Map : std::uint8_t { kNamedMetrics, kUtilization, kRequestCost };

  Map map = Map::kNamedMetrics;
  absl::string_view name;
  double value = 0;

  friend bool operator==(const LoadMetric&, const LoadMetric&) = default;
};

struct LoadReport {
  double application_utilization = 0;  ///< May exceed 1.
  double cpu_utilization = 0;          ///< May exceed 1.
  double mem_utilization = 0;          ///< From 0 to 1.
  double qps = 0;                      ///< Queries per second.
  double eps = 0;                      ///< Errors per second.
  std::span<const LoadMetric> metrics = {};
};

/// Whether an endpoint's value may count: it is finite and not negative.
inline bool is_load_value(double value) {
  return std::isfinite(value) && value >= 0;
}

/// Whether every value of the report is_load_value().
inline bool has_load_values_only(const LoadReport& report) {
  return is_load_value(report.application_utilization) && is_load_value(report.cpu_utilization) &&
         is_load_value(report.mem_utilization) && is_load_value(report.qps) &&
         is_load_value(report.eps) &&
         std::ranges::all_of(report.metrics, is_load_value, &LoadMetric::value);
}

}  // namespace signalbox
