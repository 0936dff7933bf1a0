// SPDX-License-Identifier: Apache-2.0
//
// metrics_text — reads metrics in Prometheus' text format into a list of samples.
//
//   GET /metrics ─▶ text ─▶ [parse_metrics_text] ─▶ samples ─▶ top_view, demo

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace signalbox::tools {

struct MetricSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;

  friend bool operator==(const MetricSample&, const MetricSample&) = default;
};

/// Reads all samples of the text, without comments and timestamps. INVALID_ARGUMENT names the first
/// bad line.
absl::StatusOr<std::vector<MetricSample>> parse_metrics_text(absl::string_view text);

/// The value of the first sample `name` with `label` = `value`, without its fraction; nullopt: the
/// text has none, or has a bad line.
std::optional<int> metric_value(absl::string_view text,
                                absl::string_view name,
                                const std::string& label,
                                absl::string_view value);

}  // namespace signalbox::tools
