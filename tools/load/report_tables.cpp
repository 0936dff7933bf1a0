// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_tables.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "tools/html_page.hpp"
#include "tools/load/bins.hpp"
#include "tools/load/call_code.hpp"
#include "tools/load/report_words.hpp"

namespace signalbox::tools {
namespace {

constexpr std::size_t kMostRows = 60;  // The most rows of the table by time.

std::string cell(absl::string_view classes, absl::string_view text) {
  return absl::StrCat("<td class=\"", classes, "\">", escape_html(text), "</td>");
}

std::string number(absl::string_view text) {
  return cell("number", text);
}

std::string number(std::uint64_t count) {
  return number(absl::StrCat(count));
}

std::string head(absl::string_view text, bool is_number = false) {
  return absl::StrCat(is_number ? "<th class=\"number\">" : "<th>", escape_html(text), "</th>");
}

std::string row_head(absl::string_view text) {
  return absl::StrCat("<th scope=\"row\">", escape_html(text), "</th>");
}

std::string row(absl::string_view cells, bool is_group = false) {
  return absl::StrCat(is_group ? "<tr class=\"group\">" : "<tr>", cells, "</tr>\n");
}

// A narrow table fits the screen of a telephone.
enum class Width : std::uint8_t { kNarrow, kWide };

// `heads`: the rows of headings.
std::string table(absl::string_view heads, absl::string_view rows, Width width) {
  const bool is_wide = width == Width::kWide;
  const std::string text = absl::StrCat(is_wide ? "<table>" : "<table class=\"narrow\">",
                                        "<thead>",
                                        heads,
                                        "</thead>\n<tbody>\n",
                                        rows,
                                        "</tbody></table>");
  return is_wide ? html_scroll(text) : absl::StrCat("<div class=\"scroll\">", text, "</div>\n");
}

// The heading of the column `first`, and then the headings `columns` once for each side. With
// several sides, a row above has the names of the sides.
std::string repeated_heads(const LoadReport& report,
                           absl::string_view first,
                           const std::vector<std::string>& columns) {
  std::string names = head("");
  std::string heads = head(first, true);
  for (const LoadSide& side : report.sides) {
    absl::StrAppend(
        &names, "<th colspan=\"", columns.size(), "\">", escape_html(side.name), "</th>");
    for (const std::string& column : columns)
      heads += head(column, true);
  }
  return absl::StrCat(report.sides.size() > 1 ? row(names) : std::string(), row(heads));
}

std::string seconds(std::int64_t ns) {
  return absl::StrFormat("%.3f s", static_cast<double>(ns) / 1e9);
}

using Figure = std::function<std::string(const LoadSide&)>;

// A row has one figure of each side.
std::string sides_row(const LoadReport& report, absl::string_view label, const Figure& figure) {
  std::string cells = row_head(label);
  for (const LoadSide& side : report.sides)
    cells += number(figure(side));
  return row(cells);
}

std::string side_heads(const LoadReport& report) {
  std::string heads = head("");
  for (const LoadSide& side : report.sides)
    heads += head(side.name, true);
  return row(heads);
}

std::string figures_cells(const LoadReport& report, const LoadSide& side, std::size_t act) {
  const LoadFaultFigures& figures = side.faults[act];
  return absl::StrCat(
      number(figures.lost),
      number(time_or_never(figures.first_success_ns)),
      number(recovery_text(report, side, act)),
      number(figures.baseline_p99_ns == 0 ? "–" : time_text(figures.baseline_p99_ns)),
      number(figures.sessions_moved),
      number(figures.failback_errors));
}

std::string fault_cells(const LoadFault& fault, std::size_t number_of_act, std::size_t rows) {
  const std::string span = absl::StrCat("rowspan=\"", rows, "\"");
  std::string what = fault.what.empty() || fault.what == fault.name
                         ? fault.name
                         : absl::StrCat(fault.name, ": ", fault.what);
  if (!fault.error.empty()) absl::StrAppend(&what, " (not done: ", fault.error, ")");
  return absl::StrCat("<td ",
                      span,
                      fault.is_fault ? " class=\"mark\"><b>" : " class=\"mark end\"><b>",
                      number_of_act,
                      "</b></td><td ",
                      span,
                      " class=\"number\">",
                      seconds(fault.at_ns),
                      "</td><td ",
                      span,
                      " class=\"text\">",
                      escape_html(what),
                      "</td>");
}

// The number of seconds in one row.
std::size_t seconds_in_row(std::size_t all_seconds) {
  constexpr std::array<std::size_t, 12> kSteps{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600};
  for (const std::size_t step : kSteps) {
    if (all_seconds <= step * kMostRows) return step;
  }
  return (all_seconds + kMostRows - 1) / kMostRows;
}

std::string bin_cells(const LoadBin& bin) {
  std::uint64_t ok = 0;
  std::uint64_t failed = 0;
  for (const auto& [code, count] : bin.codes)
    (is_failure(code) ? failed : ok) += count;
  const auto latency = [&bin](std::uint64_t ns) {
    return number(bin.latencies.empty() ? "–" : time_text(ns));
  };
  return absl::StrCat(number(bin.scheduled),
                      number(ok),
                      number(failed),
                      latency(bin.p50_ns),
                      latency(bin.p99_ns),
                      latency(bin.max_ns));
}

// The text for 0 is a dash, because the demo measures no CPU time.
std::string cpu_text(double ns) {
  return ns == 0 ? "–" : latency_text(ns);
}

void add_setting(std::string& rows, absl::string_view name, absl::string_view value) {
  if (!value.empty())
    rows += row(absl::StrCat(row_head(name), "<td>", escape_html(value), "</td>"));
}

}  // namespace

std::string share_text(std::uint64_t part, std::uint64_t all) {
  if (all == 0) return "–";
  return absl::StrFormat("%.3g %%", 100 * static_cast<double>(part) / static_cast<double>(all));
}

std::string faults_table(const LoadReport& report) {
  std::string rows;
  const std::size_t sides = report.sides.size();
  const bool is_compared = sides > 1;
  for (std::size_t i = 0; i < report.faults.size(); ++i) {
    const LoadFault& fault = report.faults[i];
    const std::string begin = fault_cells(fault, i + 1, fault.is_fault ? sides : 1);
    if (!fault.is_fault) {
      rows +=
          row(absl::StrCat(begin, "<td colspan=\"", 6 + (is_compared ? 1 : 0), "\"></td>"), true);
      continue;
    }
    for (std::size_t side = 0; side < sides; ++side)
      rows += row(absl::StrCat(side == 0 ? begin : "",
                               is_compared ? cell("", report.sides[side].name) : "",
                               figures_cells(report, report.sides[side], i)),
                  side == 0);
  }
  return table(row(absl::StrCat(head(""),
                                head("at", true),
                                head("act"),
                                is_compared ? head("client") : "",
                                head("calls lost", true),
                                head("next priority after", true),
                                head("p99 back after", true),
                                head("p99 before", true),
                                head("sessions moved", true),
                                head("failback errors", true))),
               rows,
               Width::kWide);
}

std::string thresholds_table(const LoadReport& report) {
  std::string rows;
  for (const LoadThreshold& threshold : report.thresholds)
    rows += row(absl::StrCat(row_head(threshold.text),
                             number(measured_text(report, threshold)),
                             cell("", threshold.is_missed ? "✗ missed" : "✓ held")));
  return table(row(absl::StrCat(head("must not be"), head("measured", true), head(""))),
               rows,
               Width::kNarrow);
}

std::string latency_table(const LoadReport& report) {
  const bool is_streaming = report.configuration.is_streaming;
  std::vector<std::string> columns{
      "from due", "from sent", absl::StrCat("closed loop of ", kClosedLoopCallers)};
  if (is_streaming) columns.emplace_back("until the first message");
  std::string rows;
  for (const auto& [label, percent] : {std::pair{"p50", 50.0},
                                       {"p90", 90.0},
                                       {"p95", 95.0},
                                       {"p99", 99.0},
                                       {"p99.9", 99.9},
                                       {"longest", 100.0}}) {
    std::string cells = row_head(label);
    for (const LoadSide& side : report.sides) {
      for (const LatencyHistogram* histogram : {&side.from_due, &side.from_sent, &side.closed_loop})
        cells += number(percentile_text(*histogram, percent));
      if (is_streaming) cells += number(percentile_text(side.first_message, percent));
    }
    rows += row(cells);
  }
  return table(repeated_heads(report, "", columns),
               rows,
               report.sides.size() > 1 || is_streaming ? Width::kWide : Width::kNarrow);
}

std::string failures_table(const LoadReport& report) {
  std::set<int> codes;
  std::set<std::string> messages;
  for (const LoadSide& side : report.sides) {
    for (const auto& [code, count] : side.codes)
      codes.insert(code);
    for (const auto& [message, count] : side.messages)
      messages.insert(message);
  }
  std::string rows;
  for (const int code : codes)
    rows += sides_row(report, code_text(code), [code](const LoadSide& side) {
      const auto found = side.codes.find(code);
      return absl::StrCat(found == side.codes.end() ? 0 : found->second);
    });
  for (const std::string& message : messages) {
    std::string cells = cell("text quiet", message);
    for (const LoadSide& side : report.sides) {
      const auto found = side.messages.find(message);
      cells += number(found == side.messages.end() ? 0 : found->second);
    }
    rows += row(cells);
  }
  return table(side_heads(report), rows, Width::kNarrow);
}

std::string endpoints_table(const LoadReport& report) {
  const bool is_compared = report.sides.size() > 1;
  std::string rows;
  for (const LoadSide& side : report.sides) {
    std::vector<LoadEndpoint> endpoints;
    std::ranges::copy_if(side.endpoints, std::back_inserter(endpoints), [](const auto& endpoint) {
      return endpoint.ok + endpoint.failed > 0;
    });
    std::ranges::stable_sort(endpoints, [&side](const auto& one, const auto& other) {
      const LoadPlace& left = side.places[one.place];
      const LoadPlace& right = side.places[other.place];
      return std::tie(left.priority, left.cluster, one.address) <
             std::tie(right.priority, right.cluster, other.address);
    });
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      const LoadEndpoint& endpoint = endpoints[i];
      rows += row(
          absl::StrCat(row_head(endpoint.address.empty() ? "no endpoint" : endpoint.address),
                       is_compared ? cell("", side.name) : "",
                       cell("", place_text(side.places[endpoint.place])),
                       number(endpoint.ok),
                       number(endpoint.failed),
                       number(share_text(endpoint.ok + endpoint.failed, side.ok + side.failed))),
          i == 0);
    }
  }
  return table(row(absl::StrCat(head("endpoint"),
                                is_compared ? head("client") : "",
                                head("at the end in"),
                                head("OK", true),
                                head("failed", true),
                                head("share", true))),
               rows,
               Width::kWide);
}

std::string time_table(const LoadReport& report) {
  std::size_t most = 0;
  for (const LoadSide& side : report.sides)
    most = std::max(most, (side.bins.size() + kBinsInSecond - 1) / kBinsInSecond);
  const std::size_t step = seconds_in_row(most);
  std::vector<std::vector<LoadBin>> sides;
  sides.reserve(report.sides.size());
  for (const LoadSide& side : report.sides)
    sides.push_back(wider_bins(side.bins, step * kBinsInSecond));
  std::string rows;
  for (std::size_t i = 0; i * step < most; ++i) {
    std::string cells = number(absl::StrCat(i * step, " s"));
    for (const auto& bins : sides)
      cells += i < bins.size() ? bin_cells(bins[i]) : "<td colspan=\"6\"></td>";
    rows += row(cells);
  }
  return table(repeated_heads(report, "from", {"due", "OK", "failed", "p50", "p99", "max"}),
               rows,
               Width::kWide);
}

std::string validity_table(const LoadReport& report) {
  std::string rows;
  const auto add = [&](absl::string_view label, const Figure& figure) {
    rows += sides_row(report, label, figure);
  };
  add("is it valid", [](const auto& side) { return side.validity.is_valid ? "yes" : "no"; });
  add("calls that were due",
      [](const auto& side) { return absl::StrCat(side.validity.scheduled); });
  add("sent", [](const auto& side) { return absl::StrCat(side.validity.sent); });
  add("dropped", [](const auto& side) { return absl::StrCat(side.validity.dropped); });
  add("answered OK", [](const auto& side) { return absl::StrCat(side.ok); });
  add("failed", [](const auto& side) { return absl::StrCat(side.failed); });
  add("not answered at the end", [](const auto& side) { return absl::StrCat(side.unanswered); });
  if (report.configuration.is_streaming)
    add("messages received in streams",
        [](const auto& side) { return absl::StrCat(side.stream_messages); });
  add("sent late by, p50",
      [](const auto& side) { return time_text(side.validity.lateness_p50_ns); });
  add("sent late by, p99",
      [](const auto& side) { return time_text(side.validity.lateness_p99_ns); });
  add("p99 may be", [](const auto& side) { return time_text(side.validity.lateness_limit_ns); });
  add("sent late by, p99.9",
      [](const auto& side) { return time_text(side.validity.lateness_p999_ns); });
  add("sent late by, at most",
      [](const auto& side) { return time_text(side.validity.lateness_max_ns); });
  add("calls that a closed loop would leave out",
      [](const auto& side) { return absl::StrCat(side.closed_loop_skipped); });
  add("CPU per call", [](const auto& side) { return cpu_text(side.cpu_per_call_ns); });
  add("of it the load engine",
      [](const auto& side) { return cpu_text(side.engine_cpu_per_call_ns); });
  return table(side_heads(report), rows, Width::kNarrow);
}

std::string configuration_table(const LoadReport& report) {
  const LoadConfiguration& used = report.configuration;
  std::string rows;
  add_setting(rows, "target", used.target);
  add_setting(rows, "method", used.method);
  add_setting(rows, "calls a second", absl::StrCat(used.rate, ", ", used.arrivals));
  add_setting(rows, "duration", absl::StrCat(used.duration_s, " s"));
  add_setting(rows, "warm-up", absl::StrCat(used.warmup_s, " s"));
  add_setting(rows, "timeout of a call", absl::StrCat(used.call_timeout_s, " s"));
  add_setting(rows, "payload", absl::StrCat(used.payload_bytes, " bytes"));
  add_setting(rows, "answer", used.is_streaming ? "a stream of messages" : "");
  add_setting(rows, "sessions", used.sessions == 0 ? "none" : absl::StrCat(used.sessions));
  add_setting(rows, "processes of each side", absl::StrCat(used.processes));
  add_setting(rows, "headers, without their values", absl::StrJoin(used.header_names, ", "));
  add_setting(rows, "seed", absl::StrCat(used.seed));
  add_setting(rows, "script", used.script_file);
  return absl::StrCat("<table class=\"settings\"><tbody>\n", rows, "</tbody></table>\n");
}

}  // namespace signalbox::tools
