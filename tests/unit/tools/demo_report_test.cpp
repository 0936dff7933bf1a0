// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_report.hpp"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kLeaves = {"primary", "secondary", "legacy"};

DemoResult good_result() {
  DemoResult result;
  result.leaves = kLeaves;
  result.rpcs = 6;
  result.per_cluster = {{"primary", 3}, {"secondary", 2}, {"legacy", 1}};
  return result;
}

}  // namespace

TEST_CASE("demo_report: the data has the promised keys, no more and no less", "[tools][demo]") {
  const nlohmann::json data = to_json(good_result());
  std::vector<std::string> keys;
  for (const auto& [key, value] : data.items())
    keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"failback_ms",
                                         "failed_in_flight",
                                         "failed_other",
                                         "failover_ms",
                                         "in_flight_at_kill",
                                         "p50_us",
                                         "p99_us",
                                         "per_cluster",
                                         "repicked",
                                         "rpcs",
                                         "session_moves"});
  CHECK(data["failover_ms"].is_null());
  CHECK(data["per_cluster"]["legacy"] == 1);
}

TEST_CASE("demo_report: succeeds if nothing else failed and every cluster served",
          "[tools][demo]") {
  DemoResult result = good_result();
  CHECK(is_success(result));
  SECTION("failures in flight are no fault") {
    result.failed_in_flight = 5;
    CHECK(is_success(result));
  }
  SECTION("one other failure is") {
    result.failed_other = 1;
    CHECK_FALSE(is_success(result));
  }
  SECTION("a session that left a backend that was there for it is") {
    result.session_moves = 1;
    CHECK_FALSE(is_success(result));
  }
  SECTION("a cluster that never served is") {
    result.per_cluster["legacy"] = 0;
    CHECK_FALSE(is_success(result));
  }
}

TEST_CASE("demo_report: a cluster that never served is in the result with 0", "[tools][demo]") {
  const CallLog log(kLeaves);
  const DemoResult result = make_result(kLeaves, log, 7, 2);
  CHECK(result.per_cluster.size() == 3);
  CHECK(result.repicked == 7);
  CHECK(result.session_moves == 2);
  CHECK_FALSE(is_success(result));
}

TEST_CASE("demo_report: the live line says rate, shares and priority", "[tools][demo]") {
  CallCounts counts;
  counts.calls = 200;
  counts.per_cluster["secondary"] = 150;
  counts.failed = 50;
  counts.latency.record(2'000'000);
  CHECK(live_header(kLeaves, "priority") ==
        "    time     rps  primary  secondary  legacy  failed  priority       p99");
  CHECK(live_line(3s, 500ms, kLeaves, counts, 1) ==
        "   3.0 s     400      0 %       75 %     0 %      50         1    2.0 ms");
  CHECK(live_line(3s, 500ms, kLeaves, counts, std::nullopt) ==
        "   3.0 s     400      0 %       75 %     0 %      50         ?    2.0 ms");
}

TEST_CASE("demo_report: names are shown without what all of them begin with", "[tools][demo]") {
  CHECK(live_header({"orders-primary", "orders-secondary", "orders-legacy"}, "priority") ==
        live_header(kLeaves, "priority"));
  CHECK(absl::StrContains(live_header({"a-one", "a-two", "b"}, "connected"), "  a-one  a-two"));
}

TEST_CASE("demo_report: what is shown fits 80 columns", "[tools][demo]") {
  DemoResult result = good_result();
  result.failover_ms = 12345.6;
  result.failback_ms = 12345.6;
  for (const absl::string_view line : absl::StrSplit(table(result), '\n')) {
    INFO(line);
    CHECK(line.size() <= 80);
    CHECK_FALSE(absl::EndsWith(line, " "));
  }
}

TEST_CASE("demo_report: the notes have what a load report lacks", "[tools][demo]") {
  DemoResult result = good_result();
  result.failed_in_flight = 3;
  result.in_flight_at_kill = 7;
  result.repicked = 5;
  result.failover_ms = 12.34;
  result.session_moves = 0;
  const std::vector<std::string> said = notes(result);
  REQUIRE(said.size() == 3);
  CHECK(
      said[0] ==
      "3 calls failed in flight, with those of the session, of 7 that a killed backend had; 5 were "
      "bound but never sent, and picked again");
  CHECK(
      said[1] ==
      "failover 12.3 ms, from the first kill to the next cluster's answer; failback none, from the "
      "first cluster's return to its first answer");
  CHECK_THAT(said[2], Catch::Matchers::Contains("it moved 0 times"));
}

}  // namespace signalbox::tools
