// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_text.hpp"

#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "tools/load/report_words.hpp"

namespace signalbox::tools {
namespace {

constexpr int kLabel = 34;
constexpr int kColumn = 15;

using Cell = std::function<std::string(const LoadSide&)>;

void add_row(std::string& text, const LoadReport& report, const char* label, const Cell& cell) {
  std::string line = absl::StrFormat("  %-*s", kLabel, label);
  for (const LoadSide& side : report.sides)
    absl::StrAppendFormat(&line, "%*s", kColumn, cell(side));
  absl::StrAppend(&text, line, "\n");
}

std::string percentile(const LatencyHistogram& histogram, double percent) {
  return percentile_text(histogram, percent, "-");
}

std::string count_text(std::uint64_t count) {
  return absl::StrCat(count);
}

void add_calls(std::string& text, const LoadReport& report) {
  add_row(text, report, "", [](const LoadSide& side) { return side.name; });
  const auto row = [&](const char* label, const Cell& cell) { add_row(text, report, label, cell); };
  row("scheduled", [](const auto& side) { return count_text(side.validity.scheduled); });
  row("sent", [](const auto& side) { return count_text(side.validity.sent); });
  row("dropped", [](const auto& side) { return count_text(side.validity.dropped); });
  row("sent late by, p99",
      [](const auto& side) { return time_text(side.validity.lateness_p99_ns); });
  row("answered OK", [](const auto& side) { return count_text(side.ok); });
  row("failed", [](const auto& side) { return count_text(side.failed); });
  if (report.is_cut)
    row("not answered", [](const auto& side) { return count_text(side.unanswered); });
  if (report.configuration.is_streaming)
    row("messages received", [](const auto& side) { return count_text(side.stream_messages); });
  for (const auto& [label, percent] : {std::pair{"p50 from due", 50.0},
                                       {"p95 from due", 95.0},
                                       {"p99 from due", 99.0},
                                       {"p99.9 from due", 99.9},
                                       {"longest from due", 100.0}}) {
    row(label,
        [percent = percent](const auto& side) { return percentile(side.from_due, percent); });
  }
  if (report.configuration.is_streaming) {
    for (const auto& [label, percent] :
         {std::pair{"p50 until the first message", 50.0}, {"p95 until the first message", 95.0}}) {
      row(label, [percent = percent](const auto& side) {
        return percentile(side.first_message, percent);
      });
    }
  }
  row("p95 from sent", [](const auto& side) { return percentile(side.from_sent, 95); });
  row(absl::StrCat("p95 of a closed loop of ", kClosedLoopCallers).c_str(),
      [](const auto& side) { return percentile(side.closed_loop, 95); });
  row("calls that it would leave out",
      [](const auto& side) { return count_text(side.closed_loop_skipped); });
  row("CPU per call", [](const auto& side) { return latency_text(side.cpu_per_call_ns); });
  row("of it the engine",
      [](const auto& side) { return latency_text(side.engine_cpu_per_call_ns); });
}

void add_faults(std::string& text, const LoadReport& report) {
  if (report.faults.empty()) return;
  absl::StrAppend(&text, "\nfaults\n");
  for (std::size_t i = 0; i < report.faults.size(); ++i) {
    const LoadFault& fault = report.faults[i];
    absl::StrAppendFormat(
        &text, "  %9.3f s  %s", static_cast<double>(fault.at_ns) / 1e9, fault.name);
    if (!fault.error.empty()) absl::StrAppend(&text, "  not done: ", fault.error);
    absl::StrAppend(&text, "\n");
    if (!fault.is_fault) continue;
    for (const LoadSide& side : report.sides) {
      const LoadFaultFigures& figures = side.faults[i];
      absl::StrAppendFormat(
          &text,
          "    %-12s lost %d, next priority after %s, p99 back: %s, sessions moved %d, "
          "failback errors %d\n",
          side.name,
          figures.lost,
          time_or_never(figures.first_success_ns),
          recovery_text(report, side, i),
          figures.sessions_moved,
          figures.failback_errors);
    }
  }
}

void add_verdicts(std::string& text, const LoadReport& report) {
  if (!report.thresholds.empty()) absl::StrAppend(&text, "\nmust not be\n");
  for (const LoadThreshold& threshold : report.thresholds)
    absl::StrAppendFormat(&text,
                          "  %-*s%*s  %s\n",
                          kLabel,
                          threshold.text,
                          kColumn,
                          measured_text(report, threshold),
                          threshold.is_missed ? "MISSED" : "held");
  absl::StrAppend(&text, "\n");
  for (const LoadSide& side : report.sides) {
    if (!side.validity.is_valid)
      absl::StrAppend(&text, "NOT VALID: ", side.name, ": ", side.validity.reason, "\n");
  }
  if (report.is_cut) absl::StrAppend(&text, "CUT: a signal ended the run early\n");
}

void add_messages(std::string& text, const LoadReport& report) {
  constexpr std::size_t kShown = 5;
  for (const LoadSide& side : report.sides) {
    std::multimap<std::uint64_t, std::string, std::greater<>> by_count;
    for (const auto& [message, count] : side.messages)
      by_count.emplace(count, message);
    std::size_t shown = 0;
    for (const auto& [count, message] : by_count) {
      if (shown++ == kShown) break;
      absl::StrAppendFormat(&text, "  %s: %d calls failed: %s\n", side.name, count, message);
    }
  }
}

}  // namespace

std::string load_report_text(const LoadReport& report) {
  const LoadConfiguration& used = report.configuration;
  std::string text = absl::StrFormat("%s, %s calls a second (%s), %g s\n",
                                     called_text(used),
                                     used.rate,
                                     used.arrivals,
                                     report.ran_s);
  if (used.processes > 1) {
    text.pop_back();
    absl::StrAppend(&text, ", ", used.processes, " processes a side\n");
  }
  add_calls(text, report);
  add_messages(text, report);
  add_faults(text, report);
  add_verdicts(text, report);
  return text;
}

std::string load_second_text(std::int64_t second,
                             const std::vector<std::pair<std::string, LoadSecond>>& sides,
                             const std::vector<std::string>& acts) {
  std::string text = absl::StrFormat("%5d s", second);
  for (const auto& [name, what] : sides) {
    absl::StrAppendFormat(&text,
                          "  | %s: sent %d, ok %d, failed %d, p50 %s, p99 %s",
                          name,
                          what.sent,
                          what.ok,
                          what.failed,
                          time_text(what.p50_ns),
                          time_text(what.p99_ns));
    if (what.dropped > 0) absl::StrAppend(&text, ", dropped ", what.dropped);
  }
  if (!acts.empty()) absl::StrAppend(&text, "  | ", absl::StrJoin(acts, ", "));
  return text;
}

}  // namespace signalbox::tools
