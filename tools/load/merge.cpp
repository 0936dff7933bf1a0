// SPDX-License-Identifier: Apache-2.0
#include "tools/load/merge.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "tools/load/bins.hpp"
#include "tools/load/fault_analysis.hpp"
#include "tools/load/tallies.hpp"
#include "tools/load/thresholds.hpp"

namespace signalbox::tools {
namespace {

using Reports = std::vector<NamedReport>;

absl::Status differs(const NamedReport& first, const NamedReport& other, const char* what) {
  return absl::InvalidArgumentError(
      absl::StrCat(first.name, " and ", other.name, " cannot be merged: they differ in ", what));
}

absl::Status check(const Reports& reports) {
  if (reports.empty()) return absl::InvalidArgumentError("no report to merge");
  const NamedReport& first = reports.front();
  for (const NamedReport& other : reports) {
    if (other.report.configuration.target != first.report.configuration.target)
      return differs(first, other, "the target");
    if (other.report.configuration.method != first.report.configuration.method)
      return differs(first, other, "the method");
    if (other.report.configuration.is_streaming != first.report.configuration.is_streaming)
      return differs(first, other, "whether the method is server-streaming");
    if (!std::ranges::equal(
            first.report.sides, other.report.sides, {}, &LoadSide::name, &LoadSide::name))
      return differs(first, other, "the clients that they compare");
  }
  return absl::OkStatus();
}

// --- time ----------------------------------------------------------------------------------------

// For each run, the number of bins by which it began after the first run; 0 for all runs if they
// are repetitions (merge.hpp).
std::vector<std::size_t> shifts_of(const Reports& reports) {
  std::int64_t first_start = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_start = std::numeric_limits<std::int64_t>::min();
  double first_end = std::numeric_limits<double>::max();
  for (const auto& [name, report] : reports) {
    first_start = std::min(first_start, report.started_unix_ms);
    last_start = std::max(last_start, report.started_unix_ms);
    first_end =
        std::min(first_end, static_cast<double>(report.started_unix_ms) + 1e3 * report.ran_s);
  }
  std::vector<std::size_t> shifts(reports.size());
  if (static_cast<double>(last_start) >= first_end) return shifts;
  constexpr std::int64_t kBinMs = kLoadBinNs / 1'000'000;
  for (std::size_t i = 0; i < reports.size(); ++i)
    shifts[i] = static_cast<std::size_t>(
        (reports[i].report.started_unix_ms - first_start + kBinMs / 2) / kBinMs);
  return shifts;
}

std::int64_t ns_of(std::size_t bins) {
  return static_cast<std::int64_t>(bins) * kLoadBinNs;
}

// --- configuration -------------------------------------------------------------------------------

// The rates of the runs in one text: "100 + 2 × 200".
std::string rates_of(const Reports& reports) {
  std::map<std::string, int> counts;
  for (const auto& [name, report] : reports)
    ++counts[report.configuration.rate];
  return absl::StrJoin(counts, " + ", [](std::string* out, const auto& rate) {
    absl::StrAppend(
        out, rate.second > 1 ? absl::StrCat(rate.second, " × ") : std::string(), rate.first);
  });
}

LoadConfiguration merged_configuration(const Reports& reports) {
  LoadConfiguration merged = reports.front().report.configuration;
  merged.rate = rates_of(reports);
  merged.sessions = 0;
  for (const auto& [name, report] : reports) {
    const LoadConfiguration& other = report.configuration;
    merged.duration_s = std::max(merged.duration_s, other.duration_s);
    merged.sessions += other.sessions;
    if (merged.script.empty()) {
      merged.script = other.script;
      merged.script_file = other.script_file;
    }
  }
  return merged;
}

// Adds a note for the settings that differ between the merged runs, and the notes of the runs.
void note_differences(const Reports& reports, std::vector<std::string>& notes) {
  const LoadConfiguration& first = reports.front().report.configuration;
  for (const auto& [name, report] : reports) {
    const LoadConfiguration& other = report.configuration;
    std::vector<std::string> differing;
    if (other.arrivals != first.arrivals) differing.emplace_back("the arrivals");
    if (other.duration_s != first.duration_s) differing.emplace_back("the duration");
    if (other.warmup_s != first.warmup_s) differing.emplace_back("the warm-up");
    if (other.call_timeout_s != first.call_timeout_s) differing.emplace_back("the timeout");
    if (other.processes != first.processes) differing.emplace_back("the number of processes");
    if (other.payload_bytes != first.payload_bytes) differing.emplace_back("the payload's size");
    if (!differing.empty())
      notes.push_back(absl::StrCat(
          name, " differs from ", reports.front().name, " in ", absl::StrJoin(differing, ", ")));
    for (const std::string& note : report.notes)
      notes.push_back(absl::StrCat(name, ": ", note));
  }
}

// --- faults --------------------------------------------------------------------------------------

const LoadFault* find_fault(const LoadReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.faults, name, &LoadFault::name);
  return found == report.faults.end() ? nullptr : &*found;
}

std::vector<LoadFault> merged_faults(const Reports& reports,
                                     const std::vector<std::size_t>& shifts,
                                     std::vector<std::string>& notes) {
  std::vector<LoadFault> merged;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    for (LoadFault fault : reports[i].report.faults) {
      fault.at_ns += ns_of(shifts[i]);
      fault.planned_ns += ns_of(shifts[i]);
      const auto known = std::ranges::find(merged, fault.name, &LoadFault::name);
      if (known == merged.end()) {
        merged.push_back(fault);
      } else if ((fault.error.empty() && fault.at_ns < known->at_ns) ||
                 (!known->error.empty() && fault.error.empty())) {
        *known = fault;
      }
    }
  }
  std::ranges::stable_sort(merged, {}, &LoadFault::at_ns);
  for (const auto& [name, report] : reports) {
    for (const LoadFault& fault : merged) {
      if (fault.is_fault && find_fault(report, fault.name) == nullptr)
        notes.push_back(absl::StrCat(
            name, " has no fault '", fault.name, "', so its lost calls are not in that row"));
    }
  }
  return merged;
}

// Adds the counts of one fault in another run. The first success is the earliest of all runs.
// Baseline and recovery cannot be added, and are computed later.
void add_figures(LoadFaultFigures& to, const LoadFaultFigures& from, std::int64_t later_ns) {
  to.lost += from.lost;
  to.sessions_moved += from.sessions_moved;
  to.failback_errors += from.failback_errors;
  if (!from.first_success_ns) return;
  const std::int64_t first = *from.first_success_ns + later_ns;
  to.first_success_ns = std::min(first, to.first_success_ns.value_or(first));
}

// --- a side --------------------------------------------------------------------------------------

std::uint32_t index_of(std::vector<LoadPlace>& places, const LoadPlace& place) {
  const auto found = std::ranges::find(places, place);
  const auto index = static_cast<std::uint32_t>(found - places.begin());
  if (found == places.end()) places.push_back(place);
  return index;
}

std::uint32_t index_of(std::vector<LoadEndpoint>& endpoints, const LoadEndpoint& endpoint) {
  const auto found = std::ranges::find(endpoints, endpoint.address, &LoadEndpoint::address);
  const auto index = static_cast<std::uint32_t>(found - endpoints.begin());
  if (found == endpoints.end()) {
    endpoints.push_back(endpoint);
  } else {
    found->ok += endpoint.ok;
    found->failed += endpoint.failed;
  }
  return index;
}

void add_bins(LoadSide& to, const LoadSide& from, std::size_t shift) {
  std::vector<std::uint32_t> places;
  places.reserve(from.places.size());
  for (const LoadPlace& place : from.places)
    places.push_back(index_of(to.places, place));
  std::vector<std::uint32_t> endpoints;
  endpoints.reserve(from.endpoints.size());
  for (LoadEndpoint endpoint : from.endpoints) {
    endpoint.place = places[endpoint.place];
    endpoints.push_back(index_of(to.endpoints, endpoint));
  }
  to.bins.resize(std::max(to.bins.size(), from.bins.size() + shift));
  for (std::size_t i = 0; i < from.bins.size(); ++i) {
    LoadBin bin = from.bins[i];
    for (LoadShare& share : bin.shares) {
      share.endpoint = endpoints[share.endpoint];
      share.place = places[share.place];
    }
    add_bin(to.bins[i + shift], bin);
  }
}

void add_validity(LoadValidity& to, const LoadValidity& from, const std::string& name) {
  to.scheduled += from.scheduled;
  to.sent += from.sent;
  to.dropped += from.dropped;
  to.lateness_p50_ns = std::max(to.lateness_p50_ns, from.lateness_p50_ns);
  to.lateness_p99_ns = std::max(to.lateness_p99_ns, from.lateness_p99_ns);
  to.lateness_p999_ns = std::max(to.lateness_p999_ns, from.lateness_p999_ns);
  to.lateness_max_ns = std::max(to.lateness_max_ns, from.lateness_max_ns);
  to.lateness_limit_ns = std::max(to.lateness_limit_ns, from.lateness_limit_ns);
  to.reachable_rate += from.reachable_rate;
  if (from.is_valid) return;
  to.is_valid = false;
  absl::StrAppend(&to.reason, to.reason.empty() ? "" : "; ", name, ": ", from.reason);
}

void add_side(LoadSide& to, const LoadSide& from, std::size_t shift, const std::string& name) {
  const auto ended = static_cast<double>(from.ok + from.failed);
  to.cpu_per_call_ns += ended * from.cpu_per_call_ns;  // Divided by all ended calls later.
  to.engine_cpu_per_call_ns += ended * from.engine_cpu_per_call_ns;
  add_validity(to.validity, from.validity, name);
  to.ok += from.ok;
  to.failed += from.failed;
  to.unanswered += from.unanswered;
  for (const auto& [code, count] : from.codes)
    to.codes[code] += count;
  for (const auto& [message, count] : from.messages)
    to.messages[message] += count;
  to.from_due.merge(from.from_due);
  to.from_sent.merge(from.from_sent);
  to.failed_from_due.merge(from.failed_from_due);
  to.stream_messages += from.stream_messages;
  to.first_message.merge(from.first_message);
  to.closed_loop.merge(from.closed_loop);
  to.closed_loop_skipped += from.closed_loop_skipped;
  add_bins(to, from, shift);
}

LoadSide merged_side(const Reports& reports,
                     const std::vector<std::size_t>& shifts,
                     const LoadReport& merged,
                     std::size_t index) {
  LoadSide side;
  side.name = reports.front().report.sides[index].name;
  side.faults.resize(merged.faults.size());
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const LoadReport& report = reports[i].report;
    add_side(side, report.sides[index], shifts[i], reports[i].name);
    for (std::size_t j = 0; j < merged.faults.size(); ++j) {
      const LoadFault* fault = find_fault(report, merged.faults[j].name);
      if (fault == nullptr) continue;
      const auto at = static_cast<std::size_t>(fault - report.faults.data());
      add_figures(side.faults[j],
                  report.sides[index].faults[at],
                  fault->at_ns + ns_of(shifts[i]) - merged.faults[j].at_ns);
    }
  }
  const auto ended = static_cast<double>(std::max<std::uint64_t>(1, side.ok + side.failed));
  side.cpu_per_call_ns /= ended;
  side.engine_cpu_per_call_ns /= ended;
  side.messages = most_frequent(side.messages);
  for (LoadBin& bin : side.bins)
    finish_percentiles(bin);
  for (std::size_t j = 0; j < merged.faults.size(); ++j) {
    const std::int64_t at = merged.faults[j].at_ns;
    side.faults[j].baseline_p99_ns = baseline_of(side.bins, at);
    side.faults[j].recovery_ns = recovery_of(
        side.bins, at, std::llround(merged.ran_s * 1e9), side.faults[j].baseline_p99_ns);
  }
  return side;
}

// --- thresholds ----------------------------------------------------------------------------------

absl::Status judge_again(const Reports& reports, LoadReport& merged) {
  for (const auto& [name, report] : reports) {
    for (const LoadThreshold& known : report.thresholds) {
      if (std::ranges::find(merged.thresholds, known.text, &LoadThreshold::text) !=
          merged.thresholds.end())
        continue;
      const auto threshold = parse_threshold(known.text);
      if (!threshold.ok())
        return absl::InvalidArgumentError(absl::StrCat(name, ": ", threshold.status().message()));
      const auto side = std::ranges::find(merged.sides, known.side, &LoadSide::name);
      if (side == merged.sides.end())
        return absl::InvalidArgumentError(absl::StrCat(name,
                                                       ": threshold '",
                                                       known.text,
                                                       "' is of side '",
                                                       known.side,
                                                       "', which is missing"));
      merged.thresholds.push_back(judge_threshold(*threshold, merged, *side));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadReport> merge_load_reports(const std::vector<NamedReport>& reports) {
  if (auto status = check(reports); !status.ok()) return status;
  const std::vector<std::size_t> shifts = shifts_of(reports);
  LoadReport merged;
  merged.signalbox_version = reports.front().report.signalbox_version;
  merged.configuration = merged_configuration(reports);
  merged.started_unix_ms = reports.front().report.started_unix_ms;
  merged.merged = 0;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const LoadReport& report = reports[i].report;
    merged.started_unix_ms = std::min(merged.started_unix_ms, report.started_unix_ms);
    merged.ran_s =
        std::max(merged.ran_s, report.ran_s + static_cast<double>(ns_of(shifts[i])) / 1e9);
    merged.is_cut = merged.is_cut || report.is_cut;
    merged.merged += report.merged;
  }
  note_differences(reports, merged.notes);
  merged.faults = merged_faults(reports, shifts, merged.notes);
  for (std::size_t i = 0; i < reports.front().report.sides.size(); ++i)
    merged.sides.push_back(merged_side(reports, shifts, merged, i));
  if (auto status = judge_again(reports, merged); !status.ok()) return status;
  merged.exit_status = exit_status_of(merged);
  return merged;
}

}  // namespace signalbox::tools
