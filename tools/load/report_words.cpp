// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_words.hpp"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace signalbox::tools {

std::string latency_text(double ns) {
  if (ns >= 1e9) return absl::StrFormat("%.3f s", ns / 1e9);
  if (ns >= 1e6) return absl::StrFormat("%.2f ms", ns / 1e6);
  return absl::StrFormat("%.0f us", ns / 1e3);
}

std::string time_text(std::uint64_t ns) {
  return latency_text(static_cast<double>(ns));
}

std::string percentile_text(const LatencyHistogram& histogram,
                            double percent,
                            absl::string_view none) {
  return histogram.count() == 0 ? std::string(none) : time_text(histogram.percentile(percent));
}

std::string time_or_never(const std::optional<std::int64_t>& ns) {
  return ns ? latency_text(static_cast<double>(*ns)) : "never";
}

std::string code_text(int code) {
  const std::string name = absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
  return name.empty() ? absl::StrCat(code) : absl::StrCat(code, " ", name);
}

std::string place_text(const LoadPlace& place) {
  return place.priority ? absl::StrCat(place.cluster, ", priority ", *place.priority)
                        : place.cluster;
}

std::string measured_text(const LoadThreshold& threshold) {
  if (!threshold.measured) return "never";
  if (threshold.unit == "ns") return latency_text(*threshold.measured);
  return absl::StrFormat(
      "%g%s", *threshold.measured, threshold.unit == "calls" ? "" : threshold.unit);
}

}  // namespace signalbox::tools
