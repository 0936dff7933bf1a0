// SPDX-License-Identifier: Apache-2.0
#include "tools/drill_report.hpp"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace signalbox::tools {
namespace {

double in_ms(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

DrillResult::Phase phase_of(const Absence& absence) {
  DrillResult::Phase phase{.name = absence.name,
                           .brings = absence.brings,
                           .away_ms = in_ms(absence.away()),
                           .calls_meanwhile = absence.calls,
                           .too_early = absence.too_early,
                           .reconvergence_ms = std::nullopt,
                           .bound_ms = in_ms(absence.bound())};
  if (const auto took = absence.reconvergence()) phase.reconvergence_ms = in_ms(*took);
  return phase;
}

nlohmann::json phase_json(const DrillResult::Phase& phase) {
  nlohmann::json data{{"name", phase.name},
                      {"brings", phase.brings},
                      {"away_ms", phase.away_ms},
                      {"calls_meanwhile", phase.calls_meanwhile},
                      {"too_early", phase.too_early},
                      {"reconvergence_ms", nullptr},
                      {"bound_ms", phase.bound_ms}};
  if (phase.reconvergence_ms) data["reconvergence_ms"] = *phase.reconvergence_ms;
  return data;
}

std::string why_failed(const DrillResult::Phase& phase) {
  if (phase.too_early > 0) {
    return absl::StrCat(
        phase.name, ": ", phase.brings, " took calls before the control plane could have said so");
  }
  if (!phase.reconvergence_ms) {
    return absl::StrFormat("%s: %s took no call within %.1f s of the control plane's return",
                           phase.name,
                           phase.brings,
                           phase.bound_ms / 1000);
  }
  if (*phase.reconvergence_ms > phase.bound_ms) {
    return absl::StrFormat("%s: the change took %.1f s to be in effect, the bound is %.1f s",
                           phase.name,
                           *phase.reconvergence_ms / 1000,
                           phase.bound_ms / 1000);
  }
  return "";
}

}  // namespace

DrillResult make_result(const CallLog& calls, const DrillLog& drill) {
  DrillResult result{.rpcs = calls.totals().calls,
                     .failed_other = calls.failed_other(),
                     .first_error = calls.first_other_error(),
                     .p50_us = calls.totals().latency.percentile(50) / 1000,
                     .p99_us = calls.totals().latency.percentile(99) / 1000,
                     .phases = {}};
  for (const Absence& absence : drill.absences())
    result.phases.push_back(phase_of(absence));
  return result;
}

std::string why_failed(const DrillResult& result) {
  if (result.failed_other > 0) {
    return absl::StrCat(
        result.failed_other, " calls failed, none needed to; the first: ", result.first_error);
  }
  for (const auto& phase : result.phases) {
    if (std::string why = why_failed(phase); !why.empty()) return why;
  }
  return "";
}

nlohmann::json to_json(const DrillResult& result) {
  nlohmann::json phases = nlohmann::json::array();
  for (const auto& phase : result.phases)
    phases.push_back(phase_json(phase));
  return {{"drill", "control-plane"},
          {"rpcs", result.rpcs},
          {"failed_other", result.failed_other},
          {"p50_us", result.p50_us},
          {"p99_us", result.p99_us},
          {"phases", std::move(phases)}};
}

std::string table(const DrillResult& result) {
  std::string text = absl::StrFormat("  %-15s %9s %9s %9s %14s %10s\n",
                                     "phase",
                                     "away",
                                     "calls",
                                     "early",
                                     "reconvergence",
                                     "bound");
  for (const auto& phase : result.phases) {
    const std::string took =
        phase.reconvergence_ms ? absl::StrFormat("%.1f ms", *phase.reconvergence_ms) : "never";
    absl::StrAppendFormat(&text,
                          "  %-15s %7.1f s %9u %9u %14s %8.1f s\n",
                          phase.name,
                          phase.away_ms / 1000,
                          phase.calls_meanwhile,
                          phase.too_early,
                          took,
                          phase.bound_ms / 1000);
  }
  const auto row = [&](const char* name, const std::string& value, const char* what) {
    absl::StrAppendFormat(&text, "  %-15s %9s  %s\n", name, value, what);
  };
  row("calls", absl::StrCat(result.rpcs), "in all");
  row("failed", absl::StrCat(result.failed_other), "must be 0");
  row("p50", absl::StrCat(result.p50_us, " us"), "from when a call was due");
  row("p99", absl::StrCat(result.p99_us, " us"), "the same");
  return text;
}

}  // namespace signalbox::tools
