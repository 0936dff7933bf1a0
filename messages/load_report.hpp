// SPDX-License-Identifier: Apache-2.0
//
// LoadReport — what an endpoint says about its own load (ORCA, gRFC A51).
//
//   stream of an endpoint ─▶ lb/pick/load_report ─▶ [LoadReport] ─▶ LoadListener::reported
//   Router::finished of the Pick API ─────────────▶ [LoadReport] ─▶ CallTracker::ended
//
// A report is valid only during the function call that passes it. 0 in any field but `metrics` is
// "not reported". Values from a stream are finite and not negative. Values from the Pick API are
// not checked.

#pragma once

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

}  // namespace signalbox
