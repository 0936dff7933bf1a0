// SPDX-License-Identifier: Apache-2.0
//
// metrics_text — reads the text that Prometheus reads, as a list of samples.
//
//   GET /metrics ─▶ text ─▶ [parse_metrics_text] ─▶ samples ─▶ top_view

#pragma once

#include <map>
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

/// Comments are left out, and so are timestamps. INVALID_ARGUMENT names the first bad line.
absl::StatusOr<std::vector<MetricSample>> parse_metrics_text(absl::string_view text);

}  // namespace signalbox::tools
