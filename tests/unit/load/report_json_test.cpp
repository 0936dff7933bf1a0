// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_json.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

LoadSide a_side() {
  LoadSide side;
  side.name = "signalbox";
  side.validity = {.scheduled = 10,
                   .sent = 9,
                   .dropped = 1,
                   .lateness_p99_ns = 4000,
                   .is_valid = false,
                   .reachable_rate = 90,
                   .reason = "1 of 10 calls was not sent"};
  side.ok = 8;
  side.failed = 1;
  side.codes = {{0, 8}, {14, 1}};
  side.messages = {{"connection reset", 1}};
  for (std::uint64_t i = 1; i <= 8; ++i)
    side.from_due.record(i * 1'000'003);
  side.failed_from_due.record(77);
  side.places = {{.cluster = "orders", .priority = 0}, {.cluster = "unknown", .priority = {}}};
  side.endpoints = {{.address = "127.0.0.1:1", .place = 0, .ok = 8, .failed = 0},
                    {.address = "", .place = 1, .ok = 0, .failed = 1}};
  LoadBin bin;
  bin.scheduled = 10;
  bin.codes = {{0, 8}, {14, 1}};
  bin.shares = {{.endpoint = 0, .place = 0, .ok = 8, .failed = 0}};
  bin.latencies = {{.bucket = 300, .count = 8}};
  side.bins = {bin};
  side.faults = {{.lost = 1, .first_success_ns = 5, .recovery_ns = {}, .sessions_moved = 2}};
  return side;
}

LoadReport a_report() {
  LoadReport report;
  report.signalbox_version = "0.1.0";
  report.configuration.target = "xds:///orders";
  report.configuration.header_names = {"x-user"};
  report.started_unix_ms = 1'700'000'000'123;
  report.faults = {{.name = "kill primary", .verb = "kill", .what = "SIGKILL", .at_ns = 3}};
  report.sides = {a_side()};
  report.thresholds = {{.text = "recovery>1s", .measured = {}, .limit = 1e9, .is_missed = true}};
  report.exit_status = 3;
  return report;
}

}  // namespace

TEST_CASE("load report: JSON that is read and written again is the same", "[load][report]") {
  const std::string text = load_report_json(a_report()).dump();
  const auto read = read_load_report(text);
  REQUIRE(read.status().ToString() == "OK");
  CHECK(load_report_json(*read).dump() == text);
  CHECK(read->sides.at(0).from_due == a_report().sides.at(0).from_due);
  CHECK(read->sides.at(0).faults.at(0).recovery_ns == std::nullopt);
  CHECK(read->sides.at(0).places.at(0).priority == 0U);
}

TEST_CASE("load report: a bad text is refused with its reason", "[load][report]") {
  struct Row {
    const char* member;
    nlohmann::ordered_json value;
    const char* reason;
  };

  const Row row = GENERATE(Row{"version", 2, "version 2; this program reads version 1"},
                           Row{"ran_s", "long", "not a report of signalbox load"},
                           Row{"faults", nlohmann::ordered_json::array(), "number of faults"});
  auto json = load_report_json(a_report());
  json[row.member] = row.value;
  const auto read = read_load_report(json.dump());
  CHECK(read.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(read.status().message()), Catch::Contains(row.reason));
  CHECK_FALSE(read_load_report("{").ok());
  CHECK_FALSE(read_load_report("[]").ok());
}

TEST_CASE("load report: indexes and buckets beyond their lists are refused", "[load][report]") {
  auto json = load_side_json(a_side());
  SECTION("the place of a share") {
    json["bins"][0]["shares"][0]["place"] = 2;
  }
  SECTION("the endpoint of a share") {
    json["bins"][0]["shares"][0]["endpoint"] = 2;
  }
  SECTION("the place of an endpoint") {
    json["endpoints"][0]["place"] = 2;
  }
  SECTION("the bucket of a bin") {
    json["bins"][0]["latencies"][0][0] = 4608;
  }
  SECTION("the bucket of a histogram") {
    json["from_due"]["buckets"][0][0] = 4608;
  }
  CHECK(read_load_side(json.dump()).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace signalbox::tools
