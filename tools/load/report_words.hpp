// SPDX-License-Identifier: Apache-2.0
//
// report_words — the figures of a LoadReport as texts, the same in every form of the report.
//
//   nanoseconds, places, thresholds ─▶ [report_words] ─▶ texts, not escaped

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "tools/load/histogram.hpp"
#include "tools/load/report.hpp"

namespace signalbox::tools {

/// "1.600 s", "4.12 ms", "85 us".
std::string latency_text(double ns);

std::string time_text(std::uint64_t ns);

/// Returns `none` for a histogram without values.
std::string percentile_text(const LatencyHistogram& histogram,
                            double percent,
                            absl::string_view none = "–");

/// Returns "never" for nullopt.
std::string time_or_never(const std::optional<std::int64_t>& ns);

/// When p99 was back after an act: a time, "did not rise", "never", or "not measured" with the
/// reason. "–" if the side has no figures of the act.
std::string recovery_text(const LoadReport& report, const LoadSide& side, std::size_t act);

/// The longest recovery of all faults, or the text of the first fault without one; "–" without
/// faults.
std::string longest_recovery_text(const LoadReport& report, const LoadSide& side);

/// "xds:///orders/orders.v1.Orders/Place", "xds:///shop, GET /orders/7"
std::string called_text(const LoadConfiguration& configuration);

/// "orders-primary, priority 0"
std::string place_text(const LoadPlace& place);

/// The measured value, with its unit unless that is calls. Without a value, "never" or, for a
/// recovery, the text of the fault. Precondition: `threshold` is one of the report's.
std::string measured_text(const LoadReport& report, const LoadThreshold& threshold);

}  // namespace signalbox::tools
