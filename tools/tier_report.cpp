// SPDX-License-Identifier: Apache-2.0
#include "tools/tier_report.hpp"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "tools/demo_report.hpp"

namespace signalbox::tools {
namespace {

std::string name_of(const TierStep& step) {
  return step.killed.empty() ? "all there" : step.killed + " killed";
}

std::string why_failed(const TierStep& step) {
  if (!step.settled) {
    return absl::StrCat(name_of(step), ": the client does not follow the computed loads");
  }
  if (step.is_as_computed()) return "";
  const auto measured = step.measured();
  for (const auto& [cluster, computed] : step.computed) {
    if (step.calls > 0 && std::abs(measured.at(cluster) - computed) <= step.tolerance(cluster))
      continue;
    return absl::StrFormat("%s: %s was to have %.1f %% of %u calls, and had %.1f %%",
                           name_of(step),
                           cluster,
                           computed,
                           step.calls,
                           measured.at(cluster));
  }
  return "";
}

nlohmann::json step_json(const TierStep& step, std::size_t number) {
  nlohmann::json data{{"step", number},
                      {"killed", nullptr},
                      {"computed", step.computed},
                      {"measured", step.measured()},
                      {"calls", step.calls},
                      {"failed", step.failed},
                      {"settled_ms", nullptr}};
  if (!step.killed.empty()) data["killed"] = step.killed;
  if (step.settled) {
    const std::chrono::duration<double, std::milli> took = *step.settled - step.begun;
    data["settled_ms"] = took.count();
  }
  return data;
}

}  // namespace

TierResult make_result(const std::vector<std::string>& leaves,
                       const CallLog& calls,
                       const TierLog& tiers) {
  return {.leaves = leaves,
          .rpcs = calls.totals().calls,
          .failed_in_flight = calls.failed_in_flight(),
          .failed_other = calls.failed_other(),
          .first_error = calls.first_other_error(),
          .p50_us = calls.totals().latency.percentile(50) / 1000,
          .p99_us = calls.totals().latency.percentile(99) / 1000,
          .steps = tiers.steps()};
}

std::string why_failed(const TierResult& result) {
  if (result.failed_other > 0) {
    return absl::StrCat(
        result.failed_other, " calls failed, none needed to; the first: ", result.first_error);
  }
  for (const TierStep& step : result.steps) {
    if (std::string why = why_failed(step); !why.empty()) return why;
  }
  return "";
}

nlohmann::json to_json(const TierResult& result) {
  nlohmann::json steps = nlohmann::json::array();
  for (const TierStep& step : result.steps)
    steps.push_back(step_json(step, steps.size()));
  return {{"drill", "tiered"},
          {"rpcs", result.rpcs},
          {"failed_in_flight", result.failed_in_flight},
          {"failed_other", result.failed_other},
          {"p50_us", result.p50_us},
          {"p99_us", result.p99_us},
          {"steps", std::move(steps)}};
}

std::string table(const TierResult& result) {
  std::string text = absl::StrFormat("  %-26s", "computed → measured, %");
  for (const std::string& leaf : result.leaves)
    absl::StrAppendFormat(&text, "%14s", short_name(leaf, result.leaves));
  absl::StrAppendFormat(&text, "%8s%8s\n", "calls", "failed");
  for (const TierStep& step : result.steps) {
    absl::StrAppendFormat(&text, "  %-26s", name_of(step));
    const auto measured = step.measured();
    for (const std::string& leaf : result.leaves)
      absl::StrAppendFormat(&text, "%5.0f → %5.1f", step.computed.at(leaf), measured.at(leaf));
    absl::StrAppendFormat(&text, "%8u%8u\n", step.calls, step.failed);
  }
  const auto row = [&](const char* name, const std::string& value, const char* what) {
    absl::StrAppendFormat(&text, "  %-15s %9s  %s\n", name, value, what);
  };
  row("calls", absl::StrCat(result.rpcs), "in all");
  row("lost", absl::StrCat(result.failed_in_flight), "with the backend that had them");
  row("failed", absl::StrCat(result.failed_other), "of all others: must be 0");
  row("p50", absl::StrCat(result.p50_us, " us"), "from when a call was due");
  row("p99", absl::StrCat(result.p99_us, " us"), "the same");
  return text;
}

}  // namespace signalbox::tools
