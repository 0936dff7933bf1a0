// SPDX-License-Identifier: Apache-2.0
#include "tools/load/processes.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "tools/load/bins.hpp"
#include "tools/load/histogram.hpp"
#include "tools/load/merge.hpp"

namespace signalbox::tools {
namespace {

template <class Number>
Number part_of(Number whole, std::uint64_t index, std::uint64_t processes) {
  const auto all = static_cast<std::uint64_t>(whole);
  return static_cast<Number>(all / processes + (index < all % processes ? 1 : 0));
}

}  // namespace

absl::Status check_processes(const SidePlan& plan, std::uint64_t processes) {
  const auto cannot = [processes](const char* option, std::uint64_t found) {
    return absl::InvalidArgumentError(absl::StrCat("--processes ",
                                                   processes,
                                                   " divides ",
                                                   option,
                                                   " between the processes, and ",
                                                   found,
                                                   " is too few; set ",
                                                   option,
                                                   " to ",
                                                   processes,
                                                   " or more"));
  };
  if (plan.calls.sessions > 0 && plan.calls.sessions < processes)
    return cannot("--session", plan.calls.sessions);
  const auto in_flight = static_cast<std::uint64_t>(plan.calls.max_in_flight);
  if (in_flight < processes) return cannot("--max-in-flight", in_flight);
  return absl::OkStatus();
}

SidePlan share_of(SidePlan plan, std::uint64_t index, std::uint64_t processes) {
  plan.calls.share = {.index = index, .count = processes};
  plan.calls.sessions = part_of(plan.calls.sessions, index, processes);
  plan.calls.max_in_flight = part_of(plan.calls.max_in_flight, index, processes);
  plan.calls.closed_loop_callers = part_of(plan.calls.closed_loop_callers, index, processes);
  return plan;
}

std::string name_of_process(const std::string& side, std::uint64_t index, std::uint64_t processes) {
  if (processes == 1) return absl::StrCat("the process of the ", side, " side");
  return absl::StrCat("process ", index + 1, " of ", processes, " of the ", side, " side");
}

absl::StatusOr<LoadSide> merge_processes(const LoadReport& run,
                                         const std::vector<ProcessResult>& results) {
  std::vector<NamedReport> reports;
  for (const ProcessResult& result : results) {
    if (!result.side) continue;
    reports.push_back({result.name, run});
    reports.back().report.sides = {*result.side};
    reports.back().report.thresholds.clear();
  }
  LoadSide side;
  if (reports.size() == 1) {
    side = std::move(reports.front().report.sides.front());
  } else {
    auto merged = merge_load_reports(reports);
    if (!merged.ok()) return merged.status();
    side = std::move(merged->sides.front());
  }
  for (const ProcessResult& result : results) {
    if (result.side) continue;
    LoadValidity& validity = side.validity;
    validity.is_valid = false;
    absl::StrAppend(&validity.reason,
                    validity.reason.empty() ? "" : "; ",
                    result.failure,
                    "; its calls are missing");
  }
  return side;
}

LoadSecond merge_seconds(const std::vector<LoadSecond>& seconds) {
  LoadSecond merged;
  LatencyHistogram latencies;
  for (const LoadSecond& second : seconds) {
    merged.sent += second.sent;
    merged.dropped += second.dropped;
    merged.ok += second.ok;
    merged.failed += second.failed;
    merged.max_ns = std::max(merged.max_ns, second.max_ns);
    latencies.merge(histogram_of({.max_ns = second.max_ns, .latencies = second.latencies}));
  }
  merged.p50_ns = latencies.percentile(50);
  merged.p99_ns = latencies.percentile(99);
  merged.latencies = buckets_of(latencies);
  return merged;
}

}  // namespace signalbox::tools
