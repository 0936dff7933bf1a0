// SPDX-License-Identifier: Apache-2.0
#include "tools/load/merge.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/example_load.hpp"
#include "tools/load/report_json.hpp"

namespace signalbox::tools {
namespace {

// The reports of four machines. Each machine makes every fourth call of one schedule.
std::vector<NamedReport> four() {
  std::vector<NamedReport> reports;
  reports.reserve(4);
  for (std::int64_t part = 0; part < 4; ++part)
    reports.push_back({"part" + std::to_string(part) + ".json", example_load(true, part, 4)});
  return reports;
}

// The calls of a bin's shares: answered and failed.
std::pair<std::uint64_t, std::uint64_t> calls_of(const std::vector<LoadShare>& shares) {
  std::pair<std::uint64_t, std::uint64_t> calls;
  for (const LoadShare& share : shares) {
    calls.first += share.ok;
    calls.second += share.failed;
  }
  return calls;
}

}  // namespace

TEST_CASE("load merge: four files equal one run of all samples, bit for bit", "[load][merge]") {
  auto reports = four();
  for (NamedReport& named : reports) {  // Writes and reads each report, as the command does.
    auto read = read_load_report(load_report_json(named.report).dump());
    REQUIRE(read.ok());
    named.report = *std::move(read);
  }
  const auto merged = merge_load_reports(reports);
  REQUIRE(merged.status().ToString() == "OK");
  const LoadReport whole = example_load(true);
  CHECK(merged->merged == 4);
  CHECK(merged->configuration.rate == "4 × 50");
  CHECK(merged->notes.empty());
  CHECK(merged->exit_status == whole.exit_status);
  for (std::size_t i = 0; i < 2; ++i) {
    const LoadSide& side = merged->sides[i];
    const LoadSide& expected = whole.sides[i];
    CHECK(side.from_due == expected.from_due);
    CHECK(side.from_sent == expected.from_sent);
    CHECK(side.failed_from_due == expected.failed_from_due);
    CHECK(side.closed_loop == expected.closed_loop);
    CHECK(side.codes == expected.codes);
    CHECK(side.validity.sent == expected.validity.sent);
    CHECK(side.endpoints.size() == expected.endpoints.size());
    REQUIRE(side.bins.size() == expected.bins.size());
    for (std::size_t j = 0; j < side.bins.size(); ++j) {
      CHECK(side.bins[j].latencies == expected.bins[j].latencies);
      CHECK(side.bins[j].p99_ns == expected.bins[j].p99_ns);
      CHECK(side.bins[j].max_ns == expected.bins[j].max_ns);
      CHECK(side.bins[j].shares.size() == expected.bins[j].shares.size());
      CHECK(calls_of(side.bins[j].shares) == calls_of(expected.bins[j].shares));
    }
    for (std::size_t j = 0; j < whole.faults.size(); ++j) {
      CHECK(side.faults[j].lost == expected.faults[j].lost);
      CHECK(side.faults[j].recovery_ns == expected.faults[j].recovery_ns);
      CHECK(side.faults[j].baseline_p99_ns == expected.faults[j].baseline_p99_ns);
      CHECK(side.faults[j].first_success_ns == expected.faults[j].first_success_ns);
    }
  }
  for (std::size_t i = 0; i < whole.thresholds.size(); ++i)
    CHECK(merged->thresholds[i].measured == whole.thresholds[i].measured);
}

TEST_CASE("load merge: runs that overlap lie by their clocks", "[load][merge]") {
  auto reports = four();
  reports.resize(2);
  reports[1].report.started_unix_ms += 10'040;
  const auto merged = merge_load_reports(reports);
  REQUIRE(merged.ok());
  const auto& bins = merged->sides[0].bins;
  REQUIRE(bins.size() == 700);
  CHECK(bins.front().scheduled == reports[0].report.sides[0].bins.front().scheduled);
  CHECK(bins.back().scheduled == reports[1].report.sides[0].bins.back().scheduled);
  CHECK(bins.back().scheduled > 0);
  CHECK(merged->ran_s == Approx(70));
  CHECK(merged->faults[0].at_ns == 12'001 * kMs);
  CHECK(merged->started_unix_ms == reports[0].report.started_unix_ms);
  SECTION("and runs that do not begin together") {
    reports[1].report.started_unix_ms += 3'600'000;
    CHECK(merge_load_reports(reports)->sides[0].bins.size() == 600);
  }
}

TEST_CASE("load merge: the next priority's first answer is the earliest of all runs",
          "[load][merge]") {
  auto reports = four();
  reports.resize(2);
  reports[1].report.faults[0].at_ns += 100 * kMs;
  reports[0].report.sides[0].faults[0].first_success_ns = 150 * kMs;
  reports[1].report.sides[0].faults[0].first_success_ns = 20 * kMs;  // 120 ms after the first act.
  CHECK(merge_load_reports(reports)->sides[0].faults[0].first_success_ns == 120 * kMs);
}

TEST_CASE("load merge: a fault of one file only is noted", "[load][merge]") {
  auto reports = four();
  reports.resize(2);
  reports[1].report.faults.clear();
  for (LoadSide& side : reports[1].report.sides)
    side.faults.clear();
  reports[1].report.configuration.script.clear();
  reports[1].report.configuration.call_timeout_s = 1;
  const auto merged = merge_load_reports(reports);
  REQUIRE(merged.ok());
  CHECK(merged->sides[1].faults[0].lost == reports[0].report.sides[1].faults[0].lost);
  REQUIRE(merged->notes.size() == 4);
  CHECK(merged->notes[0] == "part1.json differs from part0.json in the timeout");
  CHECK_THAT(merged->notes[1], Catch::Contains("part1.json has no fault 'kill orders-primary'"));
}

TEST_CASE("load merge: one measurement that is not valid spoils the sum", "[load][merge]") {
  auto reports = four();
  LoadValidity& validity = reports[2].report.sides[1].validity;
  validity.is_valid = false;
  validity.reason = "calls were late";
  validity.lateness_max_ns = 77 * kMs;
  reports[0].report.sides[1].validity.lateness_p99_ns = 55 * kMs;
  for (NamedReport& named : reports)
    named.report.sides[1].validity.reachable_rate = 10;
  const auto merged = merge_load_reports(reports);
  REQUIRE(merged.ok());
  CHECK(merged->exit_status == 3);
  CHECK(merged->sides[1].validity.reason == "part2.json: calls were late");
  CHECK(merged->sides[1].validity.lateness_max_ns == 77 * kMs);
  CHECK(merged->sides[1].validity.lateness_p99_ns == 55 * kMs);
  CHECK(merged->sides[1].validity.reachable_rate == 40);
  CHECK(merged->sides[0].validity.is_valid);
}

TEST_CASE("load merge: CPU time per call is that of all runs, by the calls that ended",
          "[load][merge]") {
  auto reports = four();
  reports.resize(2);
  LoadSide& one = reports[0].report.sides[0];
  LoadSide& other = reports[1].report.sides[0];
  one.ok = 290;
  one.failed = 10;
  one.cpu_per_call_ns = 10'000;
  one.engine_cpu_per_call_ns = 1'000;
  other.ok = 100;
  other.failed = 0;
  other.unanswered = 200;
  other.validity.sent = one.validity.sent = 300;
  other.cpu_per_call_ns = 30'000;
  other.engine_cpu_per_call_ns = 3'000;
  const auto merged = merge_load_reports(reports);
  REQUIRE(merged.ok());
  CHECK(merged->sides[0].cpu_per_call_ns == Approx(15'000));
  CHECK(merged->sides[0].engine_cpu_per_call_ns == Approx(1'500));
}

TEST_CASE("load merge: messages of streams are added up", "[load][merge]") {
  auto reports = four();
  for (NamedReport& named : reports) {
    named.report.configuration.is_streaming = true;
    named.report.sides[0].stream_messages = 5;
    named.report.sides[0].first_message.record(3 * kMs);
  }
  const auto merged = merge_load_reports(reports);
  REQUIRE(merged.ok());
  CHECK(merged->configuration.is_streaming);
  CHECK(merged->sides[0].stream_messages == 20);
  CHECK(merged->sides[0].first_message.count() == 4);
  CHECK(merged->sides[1].stream_messages == 0);
}

TEST_CASE("load merge: an act that no machine did has the exit status that load has",
          "[load][merge]") {
  auto reports = four();
  for (NamedReport& named : reports)
    named.report.faults[0].error = "there is no such process";
  const auto merged = merge_load_reports(reports);
  REQUIRE(merged.ok());
  CHECK(merged->exit_status == 2);
}

TEST_CASE("load merge: reports of different loads are refused", "[load][merge]") {
  auto reports = four();
  const auto error = [&] { return std::string(merge_load_reports(reports).status().message()); };
  SECTION("another target") {
    reports[1].report.configuration.target = "xds:///other";
    CHECK(error() == "part0.json and part1.json cannot be merged: they differ in the target");
  }
  SECTION("another method") {
    reports[3].report.configuration.method = "/a.B/C";
    CHECK_THAT(error(), Catch::Contains("they differ in the method"));
  }
  SECTION("a stream in place of one answer") {
    reports[3].report.configuration.is_streaming = true;
    CHECK_THAT(error(), Catch::Contains("they differ in whether the method is server-streaming"));
  }
  SECTION("another client") {
    reports[3].report.sides.pop_back();
    CHECK_THAT(error(), Catch::Contains("they differ in the clients that they compare"));
  }
  SECTION("a threshold that cannot be read") {
    reports[1].report.thresholds[0].text = "cost>1";
    CHECK_THAT(error(), Catch::Contains("part1.json: ") && Catch::Contains("cost"));
  }
  SECTION("none") {
    reports.clear();
    CHECK(error() == "no report to merge");
  }
}

}  // namespace signalbox::tools
