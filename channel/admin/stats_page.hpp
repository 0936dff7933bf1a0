// SPDX-License-Identifier: Apache-2.0
//
// stats_page — the metrics as lines for people: GET /stats?filter=REGEX.
//
//   Prometheus' text ─▶ [stats_text] ─▶ "signalbox_rpcs_started_total{target="…"}: 12"
//
// Pure. The filter is a regular expression (RE2). Only lines with a match in their name and labels
// remain.

#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace signalbox::channel {

/// The longest filter, in bytes.
inline constexpr std::size_t kLongestFilter = 1024;

/// Returns the lines of `metrics` that the filter matches. INVALID_ARGUMENT: the filter is too
/// long, or no regular expression.
absl::StatusOr<std::string> stats_text(absl::string_view metrics, const std::string& filter);

}  // namespace signalbox::channel
