// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_html.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"

#include "tools/html_page.hpp"
#include "tools/load/page_assets.hpp"
#include "tools/load/report_charts.hpp"
#include "tools/load/report_tables.hpp"
#include "tools/load/report_words.hpp"

namespace signalbox::tools {
namespace {

std::string section(absl::string_view title,
                    absl::string_view explanation,
                    absl::string_view body) {
  return absl::StrCat("<h2>",
                      title,
                      "</h2>\n",
                      explanation.empty() ? "" : "<p class=\"quiet\">",
                      explanation,
                      explanation.empty() ? "" : "</p>\n",
                      body);
}

// Not absl::HexStringToBytes(): abseil of Debian 13 deprecates the only form that Debian 12 has.
std::string bytes_of(absl::string_view hex) {
  std::string bytes(hex.size() / 2, '\0');
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::uint8_t byte = 0;
    std::from_chars(hex.data() + 2 * at, hex.data() + 2 * at + 2, byte, 16);
    bytes[at] = static_cast<char>(byte);
  }
  return bytes;
}

// Allows the page's own script by its hash, so that text from the report can never run as a script.
std::string policy() {
  const std::string hash = absl::Base64Escape(bytes_of(load_page_script_sha256()));
  return absl::StrCat(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'sha256-",
      hash,
      "'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n");
}

// --- verdict -------------------------------------------------------------------------------------

struct Verdict {
  const char* classes;
  std::string title;
  std::string text;
};

std::string invalid_reasons(const LoadReport& report) {
  std::vector<std::string> reasons;
  for (const LoadSide& side : report.sides) {
    if (!side.validity.is_valid)
      reasons.push_back(absl::StrCat(side.name, ": ", side.validity.reason));
  }
  return absl::StrJoin(reasons, "; ");
}

std::string missed_thresholds(const LoadReport& report) {
  std::vector<std::string> missed;
  for (const LoadThreshold& threshold : report.thresholds) {
    if (threshold.is_missed)
      missed.push_back(
          absl::StrCat(threshold.text, " (measured: ", measured_text(report, threshold), ")"));
  }
  return absl::StrJoin(missed, ", ");
}

std::string undone_acts(const LoadReport& report) {
  std::vector<std::string> undone;
  for (const LoadFault& fault : report.faults) {
    if (!fault.error.empty()) undone.push_back(absl::StrCat(fault.name, ": ", fault.error));
  }
  return absl::StrJoin(undone, "; ");
}

Verdict verdict_of(const LoadReport& report) {
  const std::string undone = undone_acts(report);
  if (!undone.empty()) return {"unsure", "? An act was not done", undone};
  const std::string invalid = invalid_reasons(report);
  if (!invalid.empty()) return {"unsure", "? The measurement is not valid", invalid};
  const std::string missed = missed_thresholds(report);
  if (!missed.empty()) return {"missed", "✗ It did not hold", missed};
  if (report.thresholds.empty())
    return {"unsure", "No threshold was set", "The numbers below are valid."};
  return {"held",
          "✓ It held",
          report.thresholds.size() == 1
              ? "The threshold was kept."
              : absl::StrCat("All ", report.thresholds.size(), " thresholds were kept.")};
}

std::string verdict_box(const LoadReport& report) {
  const Verdict verdict = verdict_of(report);
  std::string text = absl::StrCat("<div class=\"verdict ",
                                  verdict.classes,
                                  "\"><strong>",
                                  escape_html(verdict.title),
                                  "</strong><p>",
                                  escape_html(verdict.text),
                                  "</p>");
  if (report.is_cut)
    absl::StrAppendFormat(
        &text, "<p>A signal cut the run after %.1f s: this is what was.</p>", report.ran_s);
  return text + "</div>\n";
}

// --- the three numbers ---------------------------------------------------------------------------

template <class Number, class More>
std::string card(const LoadReport& report, absl::string_view title, Number number, More more) {
  std::string text = absl::StrCat("<div class=\"card\"><h2>", title, "</h2>");
  for (const LoadSide& side : report.sides)
    absl::StrAppend(&text,
                    "<div><b>",
                    escape_html(number(side)),
                    "</b><span class=\"quiet\">",
                    report.sides.size() > 1 ? absl::StrCat(escape_html(side.name), ": ") : "",
                    escape_html(more(side)),
                    "</span></div>");
  return text + "</div>\n";
}

std::string cards(const LoadReport& report) {
  const auto p99 = [](const LoadSide& side) { return percentile_text(side.from_due, 99); };
  return absl::StrCat(
      "<div class=\"cards\">\n",
      card(
          report,
          "Calls that failed",
          [](const LoadSide& side) { return absl::StrCat(side.failed); },
          [](const LoadSide& side) {
            return absl::StrCat(
                "of ", side.ok + side.failed, ", ", share_text(side.failed, side.ok + side.failed));
          }),
      card(
          report,
          "Until p99 was back, worst fault",
          [&report](const LoadSide& side) { return longest_recovery_text(report, side); },
          [&report](const LoadSide&) {
            const auto faults = std::ranges::count(report.faults, true, &LoadFault::is_fault);
            return absl::StrCat(faults, faults == 1 ? " fault" : " faults");
          }),
      card(report,
           "p99, from when calls were due",
           p99,
           [](const LoadSide& side) {
             return side.from_due.count() == 0
                        ? std::string("no call was answered")
                        : absl::StrCat("p50 ", percentile_text(side.from_due, 50));
           }),
      "</div>\n");
}

// --- charts --------------------------------------------------------------------------------------

std::string chart(const LoadReport& report,
                  absl::string_view title,
                  absl::string_view kind,
                  std::size_t side,
                  bool is_empty) {
  const std::string name = report.sides[side].name;
  return absl::StrCat(
      "<div><h3>",
      title,
      report.sides.size() > 1 ? absl::StrCat(": ", escape_html(name)) : std::string(),
      "</h3><div class=\"chart\"",
      is_empty ? std::string("><p class=\"quiet\">No call failed.</p>")
               : absl::StrCat(" data-kind=\"", kind, "\" data-side=\"", side, "\">"),
      "</div></div>\n");
}

// On a wide screen a row has two charts. With two sides, these are one kind's charts, one per side.
std::string charts(const LoadReport& report) {
  std::string text = "<div class=\"charts\">\n";
  for (const auto& [title, kind] : {std::pair{"Calls a second", "rate"},
                                    {"Latency from due, in ms", "latency"},
                                    {"Failures a second, by code", "codes"},
                                    {"Share of calls, by cluster and priority", "share"}}) {
    for (std::size_t i = 0; i < report.sides.size(); ++i)
      text += chart(report,
                    title,
                    kind,
                    i,
                    absl::string_view(kind) == "codes" && report.sides[i].failed == 0);
  }
  return text + "</div>\n";
}

std::string over_time(const LoadReport& report) {
  const double width =
      static_cast<double>(bins_in_point(report)) * static_cast<double>(kLoadBinNs) / 1e9;
  const std::string explanation =
      absl::StrFormat("A point is %g s, and has the calls that were due in it.%s",
                      width,
                      report.faults.empty() ? "" : " Numbers are the acts of the table of faults.");
  return section("Over time",
                 explanation,
                 absl::StrCat("<noscript><p>The charts need the script of this page. The tables "
                              "have all numbers without it.</p></noscript>\n",
                              charts(report)));
}

// JSON within a script element: no text of the report ends the element.
std::string data_block(const LoadReport& report) {
  const std::string json = load_charts_json(report).dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return absl::StrCat("<script type=\"application/json\" id=\"load-data\">",
                      absl::StrReplaceAll(json, {{"<", "\\u003c"}}),
                      "</script>\n");
}

// --- the page ------------------------------------------------------------------------------------

std::string title_of(const LoadReport& report) {
  return absl::StrCat("Load on ", escape_html(report.configuration.target));
}

std::string beginning(const LoadReport& report) {
  const LoadConfiguration& used = report.configuration;
  return absl::StrCat(
      "<h1>",
      title_of(report),
      "</h1>\n<p class=\"quiet\">",
      escape_html(absl::StrFormat(
          "%s, %s calls a second, %g s, from %s UTC%s",
          used.method,
          used.rate,
          report.ran_s,
          absl::FormatTime("%Y-%m-%d %H:%M:%S",
                           absl::FromUnixMillis(report.started_unix_ms),
                           absl::UTCTimeZone()),
          report.merged > 1 ? absl::StrFormat(", %d runs merged", report.merged) : "")),
      "</p>\n");
}

std::string notes(const LoadReport& report) {
  if (report.notes.empty()) return "";
  std::string text = "<ul>";
  for (const std::string& note : report.notes)
    absl::StrAppend(&text, "<li>Note: ", escape_html(note), ".</li>");
  return text + "</ul>\n";
}

std::string script_of(const LoadReport& report) {
  return report.configuration.script.empty()
             ? ""
             : absl::StrCat("<pre>", escape_html(report.configuration.script), "</pre>\n");
}

std::string tables(const LoadReport& report) {
  return absl::StrCat(
      section(
          "Latency",
          absl::StrCat("Of calls that were answered OK. From due is what callers saw. A closed "
                       "loop waits for answers, and so does not send what an outage holds up.",
                       report.configuration.is_streaming
                           ? " A latency is the time until the end of the stream. The time until "
                             "the first message is from due, too."
                           : ""),
          latency_table(report)),
      section("Calls by code", "", failures_table(report)),
      section("Endpoints", "", endpoints_table(report)),
      section("By time", "Calls by the time when they were due.", time_table(report)),
      section("How valid it is",
              "A measurement is valid if at least 99.9 % of its calls were sent, and p99 of their "
              "lateness is within the limit.",
              validity_table(report)),
      section("Configuration", "", configuration_table(report)),
      script_of(report));
}

}  // namespace

std::string load_report_html(const LoadReport& report) {
  return absl::StrCat(
      html_head(title_of(report), load_page_style(), policy()),
      "<body>\n",
      beginning(report),
      verdict_box(report),
      cards(report),
      notes(report),
      report.thresholds.empty() ? "" : section("Thresholds", "", thresholds_table(report)),
      report.faults.empty()
          ? ""
          : section("Faults",
                    "Lost: calls that failed because of the fault. P99 is back when it is within "
                    "1.2 × p99 before the fault, for 5 s.",
                    faults_table(report)),
      over_time(report),
      tables(report),
      "<p class=\"quiet\">Made by ",
      escape_html(report.signalbox_version),
      ". Charts by uPlot (MIT licence, in this file).</p>\n",
      data_block(report),
      "<script>",
      load_page_script(),
      "</script>\n</body></html>\n");
}

}  // namespace signalbox::tools
