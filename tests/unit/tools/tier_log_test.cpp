// SPDX-License-Identifier: Apache-2.0
#include "tools/tier_log.hpp"

#include <catch2/catch.hpp>

#include "tools/tier_report.hpp"

namespace signalbox::tools::tier_log_test {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using Loads = std::map<std::string, double>;

const CallTime kStart{};

FinishedCall answered(int started, int ended, const std::string& cluster) {
  FinishedCall call;
  call.started = call.due = kStart + milliseconds(started);
  call.ended = kStart + milliseconds(ended);
  call.ok = true;
  call.cluster = cluster;
  return call;
}

FinishedCall failed(int started, int ended) {
  FinishedCall call = answered(started, ended, "");
  call.ok = false;
  return call;
}

TierLog settled_log(const Loads& computed) {
  TierLog log;
  log.begin(kStart, "", computed);
  log.settled(kStart);
  return log;
}

TEST_CASE("tier log: calls that begin once the loads are in effect are measured",
          "[tools][drill]") {
  TierLog log;
  log.add(answered(0, 1, "a"));  // This call ended before the first step.
  log.begin(kStart + milliseconds(10), "", {{"a", 100}, {"b", 0}});
  log.settled(kStart + milliseconds(20));
  log.add(answered(5, 15, "b"));
  log.add(answered(15, 25, "b"));
  log.add(answered(20, 30, "a"));
  log.add(failed(21, 30));
  log.begin(kStart + milliseconds(40), "a-1", {{"a", 50}, {"b", 50}});
  log.add(answered(35, 39, "a"));  // Reported late; it belongs to the step before.
  log.add(answered(35, 45, "b"));  // Under way when the second step began.
  log.add(failed(35, 45));
  log.settled(kStart + milliseconds(50));
  log.add(answered(60, 61, "b"));

  REQUIRE(log.steps().size() == 2);
  const TierStep& first = log.steps()[0];
  CHECK(first.calls == 2);
  CHECK(first.failed == 1);
  CHECK(first.measured() == Loads{{"a", 100}, {"b", 0}});
  CHECK(first.is_as_computed());
  const TierStep& second = log.steps()[1];
  CHECK(second.killed == "a-1");
  CHECK(second.calls == 1);
  CHECK(second.failed == 1);
  CHECK(second.measured() == Loads{{"a", 0}, {"b", 100}});
}

TEST_CASE("tier log: a share may be off by five deviations, and none where there is no chance",
          "[tools][drill]") {
  const auto is_as_computed = [](const Loads& computed, int of_a, int of_b) {
    TierLog log = settled_log(computed);
    for (int i = 0; i < of_a; ++i)
      log.add(answered(1, 2, "a"));
    for (int i = 0; i < of_b; ++i)
      log.add(answered(1, 2, "b"));
    return log.steps()[0].is_as_computed();
  };
  // For 100 draws with a share of one half, five standard deviations are 25.
  CHECK(is_as_computed({{"a", 50}, {"b", 50}}, 75, 25));
  CHECK_FALSE(is_as_computed({{"a", 50}, {"b", 50}}, 76, 24));
  CHECK(is_as_computed({{"a", 100}, {"b", 0}}, 100, 0));
  CHECK_FALSE(is_as_computed({{"a", 100}, {"b", 0}}, 99, 1));
  CHECK_FALSE(is_as_computed({{"a", 100}, {"b", 0}}, 0, 0));
}

TEST_CASE("tier log: the loads that a runtime goes by", "[tools][drill]") {
  CHECK(tier_loads(R"(# HELP signalbox_tier_load_percent …
signalbox_tier_load_percent{cluster="orders",leaf="a",priority="0"} 28
signalbox_tier_load_percent{cluster="orders",leaf="a",priority="1"} 42
signalbox_tier_load_percent{cluster="orders",leaf="b",priority="0"} 30
signalbox_tier_load_percent{cluster="others",leaf="b",priority="0"} 100
signalbox_tier_load_percentage{cluster="orders",leaf="b"} 7
)",
                   "orders") == Loads{{"a", 70}, {"b", 30}});
  CHECK(tier_loads("", "orders").empty());
}

TierResult result_of(TierLog log) {
  TierResult result;
  result.leaves = {"orders-a", "orders-b"};
  result.steps = log.steps();
  return result;
}

TEST_CASE("tier report: says why the drill failed", "[tools][drill]") {
  const Loads computed{{"orders-a", 100}, {"orders-b", 0}};
  TierLog log = settled_log(computed);
  log.add(answered(1, 2, "orders-a"));
  CHECK(why_failed(result_of(log)).empty());

  TierResult failed = result_of(log);
  failed.failed_other = 2;
  failed.first_error = "no way";
  CHECK(why_failed(failed) == "2 calls failed, none needed to; the first: no way");

  log.add(answered(1, 2, "orders-b"));
  CHECK(why_failed(result_of(log)) ==
        "all there: orders-a was to have 100.0 % of 2 calls, and had 50.0 %");

  TierLog late;
  late.begin(kStart, "orders-a-1", computed);
  CHECK(why_failed(result_of(late)) ==
        "orders-a-1 killed: the client does not follow the computed loads");
  CHECK_FALSE(why_failed(result_of(settled_log(computed))).empty());
}

TEST_CASE("tier report: a table and data", "[tools][drill]") {
  TierLog log = settled_log({{"orders-a", 100}, {"orders-b", 0}});
  log.add(answered(1, 2, "orders-a"));
  log.begin(kStart + milliseconds(10), "orders-a-1", {{"orders-a", 70}, {"orders-b", 30}});
  const TierResult result = result_of(log);
  CHECK_THAT(table(result), Contains("orders-a-1 killed") && Contains("  100 → 100.0"));
  const auto data = to_json(result);
  CHECK(data["drill"] == "tiered");
  REQUIRE(data["steps"].size() == 2);
  CHECK(data["steps"][0] == nlohmann::json::parse(R"({"step": 0, "killed": null, "calls": 1,
    "failed": 0, "settled_ms": 0.0, "computed": {"orders-a": 100.0, "orders-b": 0.0},
    "measured": {"orders-a": 100.0, "orders-b": 0.0}})"));
  CHECK(data["steps"][1]["killed"] == "orders-a-1");
  CHECK(data["steps"][1]["settled_ms"].is_null());
}

}  // namespace
}  // namespace signalbox::tools::tier_log_test
