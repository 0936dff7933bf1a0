// SPDX-License-Identifier: Apache-2.0
#include "tools/drill_report.hpp"

#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include <catch2/catch.hpp>

namespace signalbox::tools::drill_report_test {
namespace {

DrillResult good_result() {
  DrillResult result;
  result.rpcs = 9000;
  result.p50_us = 3000;
  result.p99_us = 6000;
  for (const char* name : {"killed", "stopped", "replaced"}) {
    result.phases.push_back({.name = name,
                             .brings = "second",
                             .away_ms = 10000,
                             .calls_meanwhile = 5000,
                             .too_early = 0,
                             .reconvergence_ms = 812.5,
                             .bound_ms = 12864});
  }
  return result;
}

}  // namespace

TEST_CASE("drill_report: a drill fails for a failed call, and for a change late, lost or early",
          "[tools][drill][S7]") {
  struct Row {
    const char* says;
    std::function<void(DrillResult&)> spoil;
  };

  const auto row = GENERATE(values<Row>({
      {"", [](DrillResult&) {}},
      {"3 calls failed, none needed to; the first: code 14",
       [](DrillResult& result) {
         result.failed_other = 3;
         result.first_error = "code 14";
       }},
      {"", [](DrillResult& result) { result.phases[0].reconvergence_ms = 12864; }},
      {"stopped: the change took 12.9 s to be in effect, the bound is 12.9 s",
       [](DrillResult& result) { result.phases[1].reconvergence_ms = 12865; }},
      {"replaced: second took no call within 12.9 s of the control plane's return",
       [](DrillResult& result) { result.phases[2].reconvergence_ms.reset(); }},
      {"stopped: second took calls before the control plane could have said so",
       [](DrillResult& result) { result.phases[1].too_early = 1; }},
  }));
  DrillResult result = good_result();
  row.spoil(result);
  CHECK(why_failed(result) == row.says);
}

TEST_CASE("drill_report: the data has the promised keys, no more and no less", "[tools][drill]") {
  DrillResult result = good_result();
  result.phases[1].reconvergence_ms.reset();
  result.phases[1].too_early = 7;
  const nlohmann::json data = to_json(result);
  CHECK(data == nlohmann::json::parse(R"({
    "drill": "control-plane", "rpcs": 9000, "failed_other": 0, "p50_us": 3000, "p99_us": 6000,
    "phases": [
      {"name": "killed", "brings": "second", "away_ms": 10000.0, "calls_meanwhile": 5000, "too_early": 0,
       "reconvergence_ms": 812.5, "bound_ms": 12864.0},
      {"name": "stopped", "brings": "second", "away_ms": 10000.0, "calls_meanwhile": 5000, "too_early": 7,
       "reconvergence_ms": null, "bound_ms": 12864.0},
      {"name": "replaced", "brings": "second", "away_ms": 10000.0, "calls_meanwhile": 5000, "too_early": 0,
       "reconvergence_ms": 812.5, "bound_ms": 12864.0}]})"));
}

TEST_CASE("drill_report: the table has a line for each phase, and fits the terminal",
          "[tools][drill]") {
  DrillResult result = good_result();
  result.phases[2].reconvergence_ms.reset();
  result.phases[2].too_early = 3;
  const std::string text = table(result);
  CHECK(absl::StrContains(
      text, "  phase                away     calls     early  reconvergence      bound\n"));
  CHECK(absl::StrContains(
      text, "  killed             10.0 s      5000         0       812.5 ms     12.9 s\n"));
  CHECK(absl::StrContains(
      text, "  replaced           10.0 s      5000         3          never     12.9 s\n"));
  CHECK(absl::StrContains(text, "failed                  0  must be 0\n"));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    INFO(line);
    CHECK(line.size() <= 80);
  }
}

TEST_CASE("drill_report: a result is made of what both logs saw", "[tools][drill]") {
  using namespace std::chrono_literals;
  const CallTime start{1000s};
  const auto answer = [&](std::chrono::seconds at, const std::string& cluster) {
    FinishedCall call;
    call.due = call.started = start + at - 3ms;
    call.ended = start + at;
    call.ok = true;
    call.cluster = cluster;
    return call;
  };
  CallLog calls({"first", "second", "third"});
  DrillLog drill;
  drill.left(start, "killed", "second", /*breaks_stream=*/false);
  for (const auto& call : {answer(1s, "first"), answer(13s, "second")}) {
    if (call.cluster == "second") {
      drill.returning(start + 10s);
      drill.returned(start + 10s);
    }
    calls.add(call);
    drill.add(call);
  }
  FinishedCall failed = answer(14s, "");
  failed.ok = false;
  failed.code = 14;
  failed.error = "code 14, gone";
  calls.add(failed);

  const DrillResult result = make_result(calls, drill);
  CHECK(result.rpcs == 3);
  CHECK(result.failed_other == 1);
  CHECK(absl::StrContains(result.first_error, "code 14, gone"));
  CHECK(result.p50_us >= 2900);
  REQUIRE(result.phases.size() == 1);
  CHECK(result.phases[0].name == "killed");
  CHECK(result.phases[0].brings == "second");
  CHECK(result.phases[0].away_ms == 10000);
  CHECK(result.phases[0].calls_meanwhile == 1);
  CHECK(result.phases[0].reconvergence_ms == 3000.0);
  CHECK(result.phases[0].bound_ms == 5000);
}

}  // namespace signalbox::tools::drill_report_test
