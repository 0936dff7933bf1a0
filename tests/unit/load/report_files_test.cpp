// SPDX-License-Identifier: Apache-2.0
//
// The files of a load report: each has its own format, and all have the same numbers.
#include <algorithm>
#include <cstdint>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include <catch2/catch.hpp>
#include <zlib.h>

#include "tests/support/example_load.hpp"
#include "tools/load/hdr_log.hpp"
#include "tools/load/page_assets.hpp"
#include "tools/load/report_html.hpp"
#include "tools/load/report_json.hpp"
#include "tools/load/report_junit.hpp"
#include "tools/load/report_text.hpp"
#include "tools/load/report_words.hpp"

namespace signalbox::tools {
namespace {

using Catch::Contains;

std::string inflated(const std::string& base64) {
  std::string framed;
  REQUIRE(absl::Base64Unescape(base64, &framed));
  std::string plain(1 << 20, '\0');
  uLongf size = plain.size();
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(plain.data()),
                     &size,
                     reinterpret_cast<const Bytef*>(framed.data()) + 8,
                     framed.size() - 8) == Z_OK);
  plain.resize(size);
  return plain;
}

// Decodes the counts of HdrHistogram's V2 encoding, as the description of the format says.
std::vector<std::uint64_t> counts_of(const std::string& plain) {
  std::vector<std::uint64_t> counts;
  std::size_t at = 40;
  while (at < plain.size()) {
    std::uint64_t word = 0;
    for (unsigned i = 0; i < 9; ++i) {
      const auto byte = static_cast<unsigned char>(plain.at(at++));
      word |= static_cast<std::uint64_t>(i < 8 ? byte & 0x7f : byte) << (7 * i);
      if (i < 8 && byte < 0x80) break;
    }
    const auto value = static_cast<std::int64_t>(word >> 1) ^ -static_cast<std::int64_t>(word & 1);
    if (value < 0) {
      counts.resize(counts.size() + static_cast<std::size_t>(-value));
    } else {
      counts.push_back(static_cast<std::uint64_t>(value));
    }
  }
  return counts;
}

}  // namespace

TEST_CASE("load hdr: the encoding is that of PyPI's hdrhistogram 0.10.8", "[load][hdr]") {
  // Made in Python by h = HdrHistogram(1, 2**42 - 1, 2), record_value() of the values below, and
  // h.encode(). The package writes a single empty bucket as -1; Java and encode_hdr() write 0.
  // The values below leave no single empty bucket.
  LatencyHistogram histogram;
  for (const std::uint64_t value : {2U, 5U, 255U, 256U, 1'000'000U, 1'000'000U})
    histogram.record(value);
  histogram.record(5'000'000'000);
  CHECK(inflated(encode_hdr(histogram)) ==
        inflated("HISTFAAAAC54nJNpmSzMwMDAxwABTFCakYGB+T8I2H+ACDAzMTN9ZGZieirOsl+CCQDueApg"));
  LatencyHistogram many;
  many.record_many(5, std::uint64_t{1} << 40);
  CHECK(counts_of(inflated(encode_hdr(many))).at(5) == std::uint64_t{1} << 40);
  CHECK(counts_of(inflated(encode_hdr({}))).empty());
}

TEST_CASE("load hdr: the lines of a side add up to its latencies from due", "[load][hdr]") {
  const LoadReport report = example_load(true);
  std::map<std::string, std::vector<std::uint64_t>> sums;
  std::size_t lines = 0;
  double last = 0;
  for (const absl::string_view line : absl::StrSplit(hdr_log(report), '\n')) {
    if (!absl::StartsWith(line, "Tag=")) continue;
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    REQUIRE(fields.size() == 5);
    CHECK(std::stod(fields[1]) >= last);
    last = std::stod(fields[1]);
    auto& sum = sums[fields[0].substr(4)];
    const auto counts = counts_of(inflated(fields[4]));
    sum.resize(LatencyHistogram::kBuckets);
    for (std::size_t i = 0; i < counts.size(); ++i)
      sum[i] += counts[i];
    ++lines;
  }
  CHECK(lines == 120);
  for (const LoadSide& side : report.sides)
    CHECK(std::ranges::equal(sums[side.name], side.from_due.counts()));
}

TEST_CASE("load report: HTML, JUnit and JSON have the same numbers", "[load][report]") {
  const LoadReport report = example_load(true);
  const std::string html = load_report_html(report);
  const std::string xml = load_report_junit(report);
  const auto json = load_report_json(report);
  for (std::size_t i = 0; i < report.sides.size(); ++i) {
    const auto& side = json["sides"][i];
    const std::string name = side["name"];
    const auto property = [&](const std::string& key, const nlohmann::ordered_json& value) {
      CHECK_THAT(xml,
                 Contains(absl::StrCat(
                     "<property name=\"", name, ".", key, "\" value=\"", value.dump(), "\"/>")));
    };
    property("failed", side["failed"]);
    property("p99_ns", side["from_due"]["p99_ns"]);
    property("max_ns", side["from_due"]["max_ns"]);
    property("lost[kill orders-primary]", side["faults"][0]["lost"]);
    CHECK_THAT(html, Contains("<b>" + side["failed"].dump() + "</b>"));
    CHECK_THAT(html, Contains("<b>" + latency_text(side["from_due"]["p99_ns"]) + "</b>"));
    for (const char* percentile : {"p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns"})
      CHECK_THAT(
          html,
          Contains("<td class=\"number\">" + latency_text(side["from_due"][percentile]) + "</td>"));
    for (const auto& fault : side["faults"])
      CHECK_THAT(html, Contains("<td class=\"number\">" + fault["lost"].dump() + "</td>"));
  }
  for (const LoadThreshold& threshold : report.thresholds) {
    CHECK_THAT(html, Contains(measured_text(report, threshold)));
    if (threshold.is_missed)
      CHECK_THAT(xml, Contains("measured: " + measured_text(report, threshold)));
  }
}

TEST_CASE("load report: messages of streams are in every form, and in no report without streams",
          "[load][report]") {
  LoadReport report = example_load(true);
  report.sides[0].stream_messages = 8'765'432;
  report.sides[0].first_message.record(7'777'000);
  CHECK_THAT(load_report_text(report), !Contains("messages received"));
  CHECK_THAT(load_report_html(report), !Contains("messages received"));
  CHECK_THAT(load_report_junit(report), !Contains("stream_messages"));

  report.configuration.is_streaming = true;
  CHECK_THAT(load_report_text(report),
             Contains("messages received") && Contains("8765432") &&
                 Contains("p95 until the first message") && Contains("7.78 ms"));
  CHECK_THAT(load_report_html(report),
             Contains("<th scope=\"row\">messages received in streams</th>"
                      "<td class=\"number\">8765432</td>") &&
                 Contains("until the first message</th>") && Contains("7.78 ms") &&
                 Contains("<td>a stream of messages</td>"));
  CHECK_THAT(load_report_junit(report),
             Contains("\"signalbox.stream_messages\" value=\"8765432\"") &&
                 Contains("\"signalbox.first_message_p95_ns\" value=\"7777000\""));
  const auto read = read_load_report(load_report_json(report).dump());
  REQUIRE(read.ok());
  CHECK(read->configuration.is_streaming);
  CHECK(read->sides[0].stream_messages == 8'765'432);
  CHECK(read->sides[0].first_message == report.sides[0].first_message);
}

TEST_CASE("load html: the page loads nothing, and no text becomes a script", "[load][html]") {
  LoadReport report = example_load(false);
  report.sides[0].messages["</script><script>alert(1)</script>"] = 1;
  report.sides[0].places[1].cluster = "</script><script>alert(2)</script>";
  report.configuration.script = "<img src=x>";
  const std::string html = load_report_html(report);
  CHECK_THAT(html, Contains("default-src 'none'; script-src 'sha256-"));
  CHECK_THAT(html, !Contains("alert(1)</script>") && !Contains("alert(2)</script>"));
  CHECK_THAT(html, !Contains("<img") && !Contains("<link") && !Contains("src=\""));
  CHECK_THAT(html, Contains("Permission is hereby granted"));
  const std::regex script("<script[ >]");
  CHECK(std::distance(std::sregex_iterator(html.begin(), html.end(), script), {}) == 2);
  CHECK_THAT(std::string(load_page_script()), !Contains("</script"));
}

TEST_CASE("load html: the verdict is that of the exit status", "[load][html]") {
  LoadReport report = example_load(false);
  CHECK_THAT(load_report_html(report), Contains("✗ It did not hold"));
  report.thresholds.resize(1);
  CHECK_THAT(load_report_html(report), Contains("✓ It held"));
  report.thresholds.clear();
  CHECK_THAT(load_report_html(report), Contains("No threshold was set"));
  report.sides[0].validity.is_valid = false;
  report.sides[0].validity.reason = "no call was due";
  report.is_cut = true;
  CHECK_THAT(load_report_html(report),
             Contains("? The measurement is not valid") && Contains("no call was due") &&
                 Contains("A signal cut the run after 60.0 s"));
  report.faults[0].error = "ended with 1";
  CHECK_THAT(load_report_html(report),
             Contains("? An act was not done") && Contains("ended with 1"));
  CHECK_THAT(load_report_junit(report), Contains("<failure message=\"ended with 1\"/>"));
}

TEST_CASE("load report: a recovery that a short run cannot prove is not called never",
          "[load][html][junit]") {
  LoadReport report = example_load(false);
  report.faults.resize(1);
  report.ran_s = static_cast<double>(report.faults[0].at_ns) / 1e9 + 3;
  report.sides[0].faults.resize(1);
  report.sides[0].faults[0].recovery_ns = std::nullopt;
  LoadThreshold threshold{.text = "recovery>1s", .side = "signalbox", .unit = "ns"};
  threshold.is_missed = true;
  report.thresholds = {threshold};
  const std::string why = "not measured: the run ended 3.0 s after the fault";
  CHECK(recovery_text(report, report.sides[0], 0) == why);
  CHECK(measured_text(report, threshold) == why);
  CHECK_THAT(load_report_text(report), Contains("p99 back: " + why));
  CHECK_THAT(load_report_html(report), Contains("<td class=\"number\">" + why + "</td>"));
  CHECK_THAT(load_report_junit(report), Contains("measured: " + why));
  report.sides[0].faults[0].baseline_p99_ns = 0;
  CHECK_THAT(load_report_text(report), Contains("no call ended OK in the 5 s before"));
}

TEST_CASE("load report: a run of 16.4 s shows that p99 was not back 5 s after its fault",
          "[load][report]") {
  LoadReport report;
  report.ran_s = 16.4;  // Times 1e9, this is less than 16'400'000'000.
  report.faults = {{.name = "kill primary", .at_ns = 11'400'000'000}};
  report.sides = {{.bins = std::vector<LoadBin>(164, {.scheduled = 10}),
                   .faults = {{.baseline_p99_ns = 1'000'000}}}};
  CHECK(recovery_text(report, report.sides[0], 0) == "never");
}

TEST_CASE("load report: p99 that stayed within its limit is not said to be back after 0 us",
          "[load][html]") {
  LoadReport report = example_load(false);
  report.faults.resize(1);
  report.sides[0].faults.resize(1);
  report.sides[0].faults[0].recovery_ns = 0;
  CHECK_THAT(load_report_text(report), Contains("p99 back: did not rise"));
  CHECK(longest_recovery_text(report, report.sides[0]) == "did not rise");
  LoadThreshold threshold{.text = "recovery>1s", .side = "signalbox", .measured = 0, .unit = "ns"};
  CHECK(measured_text(report, threshold) == "did not rise");
  threshold.measured = 2e9;
  CHECK(measured_text(report, threshold) == "2.000 s");
  report.sides[0].faults[0].recovery_ns = 1;
  CHECK(longest_recovery_text(report, report.sides[0]) != "did not rise");
}

TEST_CASE("load html: a run without calls has a page", "[load][html]") {
  LoadReport report;
  report.sides.resize(1);
  CHECK_THAT(load_report_html(report), Contains("no call was answered"));
  CHECK_THAT(hdr_log(report), !Contains("Tag="));
}

TEST_CASE("load junit: a case for each threshold, and one for the validity", "[load][junit]") {
  LoadReport report = example_load(false);
  report.sides[0].validity.is_valid = false;
  report.sides[0].validity.reason = "late \x01 & slow";
  const std::string xml = load_report_junit(report);
  CHECK_THAT(xml, Contains("tests=\"5\" failures=\"2\""));
  CHECK_THAT(xml, Contains("name=\"not lost&gt;0\"/>"));
  CHECK_THAT(xml, Contains("must not be: p99&gt;40ms\"/>"));
  CHECK_THAT(xml, Contains("<failure message=\"late   &amp; slow\"/>"));
  report.is_cut = true;
  CHECK_THAT(load_report_junit(report),
             Contains("tests=\"5\" failures=\"3\"") &&
                 Contains("<failure message=\"a signal ended the run early\"/>"));
}

}  // namespace signalbox::tools
