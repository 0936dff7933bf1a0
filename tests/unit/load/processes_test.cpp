// SPDX-License-Identifier: Apache-2.0
#include "tools/load/processes.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/example_load.hpp"
#include "tools/load/merge.hpp"
#include "tools/load/report_json.hpp"

namespace signalbox::tools {
namespace {

// The report of example_load() without the results of its sides (the compared clients).
LoadReport run() {
  LoadReport report = example_load(false);
  report.sides.clear();
  return report;
}

// The results of processes that share the calls of the example.
std::vector<ProcessResult> results(std::int64_t processes) {
  std::vector<ProcessResult> results;
  results.reserve(static_cast<std::size_t>(processes));
  for (std::int64_t i = 0; i < processes; ++i)
    results.push_back({.name = "process " + std::to_string(i + 1),
                       .side = example_side("grpc", true, i, processes),
                       .failure = ""});
  return results;
}

}  // namespace

TEST_CASE("processes: a plan is divided, and nothing is lost or added", "[load][processes]") {
  SidePlan plan;
  plan.calls.sessions = 7;
  plan.calls.max_in_flight = 10'000;
  const std::uint64_t processes = GENERATE(1, 2, 3, 7);
  std::size_t sessions = 0;
  std::int64_t in_flight = 0;
  std::int64_t callers = 0;
  for (std::uint64_t i = 0; i < processes; ++i) {
    const SidePlan part = share_of(plan, i, processes);
    CHECK(part.calls.share.index == i);
    CHECK(part.calls.share.count == processes);
    CHECK(part.calls.sessions >= 1);
    sessions += part.calls.sessions;
    in_flight += part.calls.max_in_flight;
    callers += part.calls.closed_loop_callers;
  }
  CHECK(sessions == 7);
  CHECK(in_flight == 10'000);
  CHECK(callers == kClosedLoopCallers);
}

TEST_CASE("processes: without sessions no process has one", "[load][processes]") {
  CHECK(share_of(SidePlan(), 1, 2).calls.sessions == 0);
  CHECK(check_processes(SidePlan(), kMostProcesses).ok());
}

TEST_CASE("processes: too few sessions or calls in flight are refused", "[load][processes]") {
  SidePlan plan;
  plan.calls.sessions = 3;
  CHECK(check_processes(plan, 3).ok());
  CHECK(check_processes(plan, 4).message() ==
        "--processes 4 divides --session between the processes, and 3 is too few; set --session "
        "to 4 or more");
  plan.calls.sessions = 0;
  plan.calls.max_in_flight = 3;
  CHECK_THAT(std::string(check_processes(plan, 4).message()),
             Catch::Contains("set --max-in-flight to 4 or more"));
}

TEST_CASE("processes: their results are that of one process, bit for bit", "[load][processes]") {
  const std::int64_t processes = GENERATE(1, 2, 5);
  const auto merged = merge_processes(run(), results(processes));
  REQUIRE(merged.status().ToString() == "OK");
  const LoadSide whole = example_side("grpc", true, 0, 1);
  CHECK(merged->name == "grpc");
  CHECK(merged->from_due == whole.from_due);
  CHECK(merged->from_sent == whole.from_sent);
  CHECK(merged->failed_from_due == whole.failed_from_due);
  CHECK(merged->codes == whole.codes);
  CHECK(merged->ok == whole.ok);
  CHECK(merged->failed == whole.failed);
  CHECK(merged->validity.scheduled == whole.validity.scheduled);
  CHECK(merged->validity.is_valid);
  REQUIRE(merged->bins.size() == whole.bins.size());
  for (std::size_t i = 0; i < whole.bins.size(); ++i)
    CHECK(merged->bins[i].latencies == whole.bins[i].latencies);
  REQUIRE(merged->faults.size() == whole.faults.size());
  for (std::size_t i = 0; i < whole.faults.size(); ++i) {
    CHECK(merged->faults[i].lost == whole.faults[i].lost);
    CHECK(merged->faults[i].recovery_ns == whole.faults[i].recovery_ns);
  }
}

TEST_CASE("processes: merged as `load merge` merges reports", "[load][processes][merge]") {
  std::vector<NamedReport> reports;
  for (const ProcessResult& result : results(3)) {
    reports.push_back({result.name, run()});
    reports.back().report.sides = {*result.side};
    reports.back().report.thresholds.clear();
  }
  const auto expected = merge_load_reports(reports);
  const auto merged = merge_processes(run(), results(3));
  REQUIRE((expected.ok() && merged.ok()));
  CHECK(load_side_json(*merged).dump() == load_side_json(expected->sides[0]).dump());
}

TEST_CASE("processes: one that died is named, and its calls are missing", "[load][processes]") {
  auto all = results(2);
  all[1].side.reset();
  all[1].failure = name_of_process("grpc", 1, 2) + " ended early: process 77 ended with 137";
  const auto merged = merge_processes(run(), all);
  REQUIRE(merged.ok());
  CHECK_FALSE(merged->validity.is_valid);
  CHECK(merged->validity.reason ==
        "process 2 of 2 of the grpc side ended early: process 77 ended with 137; its calls are "
        "missing");
  CHECK(merged->validity.sent == all[0].side->validity.sent);
}

TEST_CASE("processes: seconds are added, with the percentiles of all calls", "[load][processes]") {
  LoadRecorder whole("signalbox", 0, std::chrono::seconds(60));
  std::vector<LoadSecond> parts;
  for (std::int64_t part = 0; part < 3; ++part) {
    LoadRecorder recorder("signalbox", 0, std::chrono::seconds(60));
    for (std::int64_t i = part; i < 600; i += 3) {
      EndedCall call = example_call(i, false);
      call.endpoint = EndedCall::kNoEndpoint;
      call.session = EndedCall::kNoSession;
      for (LoadRecorder* each : {&recorder, &whole}) {
        each->sent({.due_ns = call.due_ns, .sent_ns = call.sent_ns});
        each->ended(call);
      }
    }
    parts.push_back(recorder.take_second());
  }
  const LoadSecond expected = whole.take_second();
  const LoadSecond merged = merge_seconds(parts);
  CHECK(merged.sent == expected.sent);
  CHECK(merged.ok == expected.ok);
  CHECK(merged.failed == expected.failed);
  CHECK(merged.p50_ns == expected.p50_ns);
  CHECK(merged.p99_ns == expected.p99_ns);
  CHECK(merged.max_ns == expected.max_ns);
  CHECK(merged.latencies == expected.latencies);
}

}  // namespace signalbox::tools
