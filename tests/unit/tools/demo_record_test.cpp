// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_record.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::tools::demo_record_test {
namespace {

using namespace std::chrono_literals;

const CallTime kBegin{std::chrono::hours(1)};

CallTime at(std::chrono::milliseconds time) {
  return kBegin + time;
}

std::int64_t ns_of(std::chrono::milliseconds time) {
  return std::chrono::nanoseconds(time).count();
}

// A call to endpoint 1, the near one.
EndedCall call_of(std::chrono::milliseconds due, std::chrono::milliseconds took) {
  return {.due_ns = ns_of(due),
          .sent_ns = ns_of(due),
          .ended_ns = ns_of(due + took),
          .endpoint = 1,
          .is_closed_loop = true};
}

EndedCall far_call(std::chrono::milliseconds due, std::chrono::milliseconds took) {
  EndedCall call = call_of(due, took);
  call.endpoint = 2;
  return call;
}

EndedCall failed_call(std::chrono::milliseconds due, std::chrono::milliseconds took) {
  EndedCall call = call_of(due, took);
  call.code = 14;
  return call;
}

// Gives the record one drain of the engine, when the call ends: the call's sending and its end.
void add(DemoRecord& record,
         const EndedCall& call,
         const std::vector<std::string>& endpoints = {}) {
  record.add({.sent = {{.due_ns = call.due_ns, .sent_ns = call.sent_ns}},
              .ended = {call},
              .endpoints = endpoints},
             kBegin + std::chrono::nanoseconds(call.ended_ns));
}

DemoAct kill_near() {
  return {.verb = "kill", .on = "near", .what = "SIGKILL to near"};
}

RankedPlace place_of(const char* cluster, std::uint32_t rank) {
  return {.place = {.cluster = cluster, .priority = 0}, .rank = rank};
}

// Records a call to the near cluster and the kill of that cluster at 500 ms. The next cluster is
// the far one.
void kill_near_after_a_call(DemoRecord& record) {
  record.place("127.0.0.1:1", place_of("near", 0));
  record.place("127.0.0.1:2", place_of("far", 1000));
  add(record, call_of(100ms, 1ms), {"127.0.0.1:1", "127.0.0.1:2"});
  record.act_begins(at(500ms), kill_near());
}

LoadReport finished(DemoRecord& record, const DemoVerdict& verdict = {}) {
  return record.finish(at(2s), {.target = "xds:///orders", .rate = "10"}, {{"gone", 1}}, verdict);
}

}  // namespace

TEST_CASE("demo_record: a kill has the calls that it lost, and the next cluster's first answer",
          "[tools][demo][load]") {
  DemoRecord record(kBegin, 2);
  kill_near_after_a_call(record);
  add(record, failed_call(490ms, 20ms));
  add(record, far_call(510ms, 30ms));
  record.act_begins(at(900ms),
                    {.verb = "restart", .on = "near", .what = "near is back", .is_fault = false});
  add(record, call_of(1000ms, 1ms));
  const LoadReport report = finished(record);

  REQUIRE(report.faults.size() == 2);
  CHECK(report.faults[0].name == "kill near");
  CHECK(report.faults[0].at_ns == 500'000'000);
  CHECK_FALSE(report.faults[1].is_fault);
  REQUIRE(report.sides.size() == 1);
  const LoadSide& side = report.sides[0];
  CHECK(side.ok == 3);
  CHECK(side.failed == 1);
  CHECK(side.codes == std::map<int, std::uint64_t>{{0, 3}, {14, 1}});
  CHECK(side.messages == std::map<std::string, std::uint64_t>{{"gone", 1}});
  CHECK(side.validity.scheduled == 4);
  REQUIRE(side.faults.size() == 2);
  CHECK(side.faults[0].lost == 1);
  CHECK(side.faults[0].first_success_ns == 40'000'000);
  CHECK(report.ran_s == 2);
  CHECK(report.configuration.duration_s == 2);
}

TEST_CASE("demo_record: an act that began before a call's end is known in time",
          "[tools][demo][load]") {
  DemoRecord record(kBegin, 2);
  record.place("127.0.0.1:1", place_of("near", 0));
  add(record, failed_call(490ms, 20ms), {"127.0.0.1:1"});
  record.act_begins(at(500ms), kill_near());
  CHECK(finished(record).sides[0].faults[0].lost == 1);
}

TEST_CASE("demo_record: the second act of a name has a number", "[tools][demo][load]") {
  DemoRecord record(kBegin, 2);
  record.act_begins(at(100ms), kill_near());
  record.act_begins(at(200ms), kill_near());
  record.act_begins(at(300ms), kill_near());
  const LoadReport report = finished(record);
  REQUIRE(report.faults.size() == 3);
  CHECK(report.faults[0].name == "kill near");
  CHECK(report.faults[1].name == "kill near#2");
  CHECK(report.faults[2].name == "kill near#3");
}

TEST_CASE("demo_record: the verdict is the demo's", "[tools][demo][load]") {
  struct Row {
    const char* name;
    DemoVerdict verdict;
    bool has_failures_missed;
    bool has_checks_missed;
    int exit_status;
  };

  const auto row = GENERATE(values<Row>({
      {"all went well", {.failed_other = 0, .failure = "", .notes = {"a"}}, false, false, 0},
      {"calls failed", {.failed_other = 2, .failure = "two", .notes = {"a"}}, true, true, 1},
      {"a check failed", {.failed_other = 0, .failure = "late", .notes = {"a"}}, false, true, 1},
  }));
  INFO(row.name);
  DemoRecord record(kBegin, 2);
  const LoadReport report = finished(record, row.verdict);
  REQUIRE(report.thresholds.size() == 2);
  CHECK(report.thresholds[0].is_missed == row.has_failures_missed);
  CHECK(report.thresholds[1].is_missed == row.has_checks_missed);
  CHECK(report.exit_status == row.exit_status);
  CHECK(report.notes.size() == (row.verdict.failure.empty() ? 1 : 2));
  CHECK(report.notes.back() == (row.verdict.failure.empty() ? "a" : row.verdict.failure));
}

}  // namespace signalbox::tools::demo_record_test
