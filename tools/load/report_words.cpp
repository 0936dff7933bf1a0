// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_words.hpp"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "tools/load/fault_analysis.hpp"

namespace signalbox::tools {
namespace {

bool is_recovery(const LoadThreshold& threshold) {
  return absl::StartsWith(threshold.text, "recovery");
}

std::string unmeasured_text(const LoadReport& report, const LoadThreshold& threshold) {
  const auto side = std::ranges::find(report.sides, threshold.side, &LoadSide::name);
  if (side == report.sides.end() || !is_recovery(threshold)) return "never";
  if (threshold.fault.empty()) return longest_recovery_text(report, *side);
  const auto fault = std::ranges::find(report.faults, threshold.fault, &LoadFault::name);
  if (fault == report.faults.end()) return "never";
  return recovery_text(report, *side, static_cast<std::size_t>(fault - report.faults.begin()));
}

std::string recovered_text(std::int64_t ns) {
  return ns == 0 ? "did not rise" : time_text(static_cast<std::uint64_t>(ns));
}

}  // namespace

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

std::string recovery_text(const LoadReport& report, const LoadSide& side, std::size_t act) {
  if (act >= side.faults.size()) return "–";
  const LoadFaultFigures& figures = side.faults[act];
  if (figures.recovery_ns) return recovered_text(*figures.recovery_ns);
  const std::int64_t at_ns = report.faults[act].at_ns;
  const auto ran_ns = std::llround(report.ran_s * 1e9);
  switch (why_unrecovered(side.bins, at_ns, ran_ns, figures.baseline_p99_ns)) {
    case Unrecovered::kNoBaseline:
      return "not measured: no call ended OK in the 5 s before";
    case Unrecovered::kTooShort:
      return absl::StrFormat("not measured: the run ended %.1f s after the fault",
                             report.ran_s - static_cast<double>(at_ns) / 1e9);
    case Unrecovered::kNever:
      break;
  }
  return "never";
}

std::string longest_recovery_text(const LoadReport& report, const LoadSide& side) {
  std::optional<std::int64_t> longest;
  for (std::size_t i = 0; i < report.faults.size() && i < side.faults.size(); ++i) {
    if (!report.faults[i].is_fault) continue;
    const auto& recovery = side.faults[i].recovery_ns;
    if (!recovery) return recovery_text(report, side, i);
    longest = std::max(*recovery, longest.value_or(0));
  }
  return longest ? recovered_text(*longest) : "–";
}

std::string called_text(const LoadConfiguration& configuration) {
  const bool is_grpc = absl::StartsWith(configuration.method, "/");
  return is_grpc ? absl::StrCat(configuration.target, configuration.method)
                 : absl::StrCat(configuration.target, ", ", configuration.method);
}

std::string place_text(const LoadPlace& place) {
  return place.priority ? absl::StrCat(place.cluster, ", priority ", *place.priority)
                        : place.cluster;
}

std::string measured_text(const LoadReport& report, const LoadThreshold& threshold) {
  if (!threshold.measured) return unmeasured_text(report, threshold);
  if (is_recovery(threshold)) return recovered_text(std::llround(*threshold.measured));
  if (threshold.unit == "ns") return latency_text(*threshold.measured);
  return absl::StrFormat(
      "%g%s", *threshold.measured, threshold.unit == "calls" ? "" : threshold.unit);
}

}  // namespace signalbox::tools
