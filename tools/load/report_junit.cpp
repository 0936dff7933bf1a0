// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_junit.hpp"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "tools/html_page.hpp"
#include "tools/load/report_words.hpp"

namespace signalbox::tools {
namespace {

// XML 1.0 forbids most control characters. Messages of servers may have them.
std::string escape_xml(absl::string_view text) {
  std::string escaped = escape_html(text);
  for (char& character : escaped) {
    if (static_cast<unsigned char>(character) < 0x20) character = ' ';
  }
  return escaped;
}

void add_property(std::string& to, absl::string_view name, std::uint64_t value) {
  absl::StrAppend(&to, "      <property name=\"", escape_xml(name), "\" value=\"", value, "\"/>\n");
}

void add_properties(std::string& to, const LoadReport& report) {
  absl::StrAppend(&to, "    <properties>\n");
  for (const LoadSide& side : report.sides) {
    const auto add = [&](absl::string_view name, std::uint64_t value) {
      add_property(to, absl::StrCat(side.name, ".", name), value);
    };
    add("scheduled", side.validity.scheduled);
    add("sent", side.validity.sent);
    add("dropped", side.validity.dropped);
    add("ok", side.ok);
    add("failed", side.failed);
    add("p50_ns", side.from_due.percentile(50));
    add("p95_ns", side.from_due.percentile(95));
    add("p99_ns", side.from_due.percentile(99));
    add("max_ns", side.from_due.max());
    if (report.configuration.is_streaming) {
      add("stream_messages", side.stream_messages);
      add("first_message_p95_ns", side.first_message.percentile(95));
    }
    for (std::size_t i = 0; i < report.faults.size(); ++i)
      add(absl::StrCat("lost[", report.faults[i].name, "]"), side.faults[i].lost);
  }
  absl::StrAppend(&to, "    </properties>\n");
}

// Adds a test case. `failure`: why it failed; empty: it passed.
void add_case(std::string& to,
              absl::string_view group,
              absl::string_view name,
              absl::string_view failure) {
  absl::StrAppend(&to,
                  "    <testcase classname=\"signalbox.load.",
                  escape_xml(group),
                  "\" name=\"",
                  escape_xml(name),
                  "\"");
  if (failure.empty()) {
    absl::StrAppend(&to, "/>\n");
  } else {
    absl::StrAppend(
        &to, ">\n      <failure message=\"", escape_xml(failure), "\"/>\n    </testcase>\n");
  }
}

std::string failure_of(const LoadReport& report, const LoadThreshold& threshold) {
  if (!threshold.is_missed) return "";
  return absl::StrCat(
      "measured: ", measured_text(report, threshold), "; must not be: ", threshold.text);
}

}  // namespace

std::string load_report_junit(const LoadReport& report) {
  std::string cases;
  std::size_t number = 0;
  std::size_t failures = 0;
  const auto add =
      [&](absl::string_view group, absl::string_view name, const std::string& failure) {
        ++number;
        failures += failure.empty() ? 0 : 1;
        add_case(cases, group, name, failure);
      };
  for (const LoadSide& side : report.sides)
    add(side.name, "the measurement is valid", side.validity.reason);
  add("run", "the run was not cut", report.is_cut ? "a signal ended the run early" : "");
  for (const LoadFault& fault : report.faults) {
    if (!fault.error.empty())
      add("run", absl::StrCat("the act was done: ", fault.name), fault.error);
  }
  for (const LoadThreshold& threshold : report.thresholds)
    add(threshold.side, absl::StrCat("not ", threshold.text), failure_of(report, threshold));
  std::string properties;
  add_properties(properties, report);
  const std::string counts = absl::StrFormat(
      "tests=\"%d\" failures=\"%d\" errors=\"0\" time=\"%.3f\"", number, failures, report.ran_s);
  return absl::StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ",
      counts,
      ">\n  <testsuite name=\"signalbox load ",
      escape_xml(report.configuration.target),
      "\" ",
      counts,
      " skipped=\"0\" timestamp=\"",
      absl::FormatTime(
          "%Y-%m-%dT%H:%M:%S", absl::FromUnixMillis(report.started_unix_ms), absl::UTCTimeZone()),
      "\">\n",
      properties,
      cases,
      "  </testsuite>\n</testsuites>\n");
}

}  // namespace signalbox::tools
