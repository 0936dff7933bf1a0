// SPDX-License-Identifier: Apache-2.0
#include "tools/call_log.hpp"

#include <map>
#include <string>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

using namespace std::chrono_literals;

constexpr const char* kKilled = "127.0.0.11:4000";
constexpr const char* kLive = "127.0.0.21:4000";

CallTime at(std::chrono::milliseconds since_start) {
  return CallTime{} + 1h + since_start;
}

CallLog log_of_a_demo() {
  return CallLog({"primary", "secondary", "legacy"});
}

// The backends of the first cluster are killed at 1000 ms. Their processes end at 1010 ms.
CallLog log_with_a_kill() {
  CallLog log = log_of_a_demo();
  log.kill_begins(at(1000ms), {kKilled});
  log.kill_ended(at(1010ms));
  return log;
}

FinishedCall answered(std::chrono::milliseconds started,
                      std::chrono::milliseconds ended,
                      const std::string& address,
                      const std::string& cluster) {
  return {.due = at(started),
          .started = at(started),
          .ended = at(ended),
          .ok = true,
          .code = 0,
          .address = address,
          .cluster = cluster,
          .error = {}};
}

FinishedCall failed(std::chrono::milliseconds started,
                    std::chrono::milliseconds ended,
                    const std::string& address) {
  FinishedCall call = answered(started, ended, address, "");
  call.ok = false;
  call.code = 14;
  call.error = "code 14, Socket closed";
  return call;
}

}  // namespace

TEST_CASE("call_log: the session's calls are no part of the load's rate", "[tools][demo]") {
  CallLog log = log_of_a_demo();
  FinishedCall of_session = answered(2ms, 900ms, kLive, "primary");
  of_session.is_of_session = true;
  log.add(answered(1ms, 3ms, kLive, "primary"));
  log.add(of_session);
  FinishedCall lost = failed(4ms, 5ms, kLive);
  lost.is_of_session = true;
  log.add(lost);
  for (const CallCounts& counts : {log.totals(), log.take_interval()}) {
    CHECK(counts.calls == 1);
    CHECK(counts.failed == 1);
    CHECK(counts.per_cluster == std::map<std::string, std::uint64_t>{{"primary", 1}});
    CHECK(counts.latency.max() == 2'000'000);
  }
  CHECK(log.failed_other() == 1);
}

TEST_CASE("call_log: blames a kill only for calls that a killed backend had", "[tools][demo]") {
  struct Row {
    const char* when;
    FinishedCall call;
    bool blamed;
  };

  FinishedCall hung = failed(990ms, 6000ms, kKilled);
  hung.code = 4;
  const auto row = GENERATE_COPY(values<Row>({
      {"it was under way when the signal was sent", failed(990ms, 1001ms, kKilled), true},
      {"it was sent before the client could know", failed(1100ms, 1101ms, kKilled), true},
      {"it was sent when the client had to know", failed(1261ms, 1262ms, kKilled), false},
      {"it failed before the signal was sent", failed(990ms, 999ms, kKilled), false},
      {"its backend was not killed", failed(990ms, 1001ms, kLive), false},
      {"it was never bound", failed(990ms, 1001ms, ""), false},
      {"it failed in another way", hung, false},
  }));
  DYNAMIC_SECTION(row.when) {
    CallLog log = log_with_a_kill();
    log.add(row.call);
    CHECK(log.failed_in_flight() == (row.blamed ? 1 : 0));
    CHECK(log.failed_other() == (row.blamed ? 0 : 1));
    CHECK(log.failed_in_flight() <= log.in_flight_at_kill());
    CHECK(log.first_other_error().empty() == row.blamed);
  }
}

TEST_CASE("call_log: a call may fail while the kill is not over", "[tools][demo]") {
  CallLog log = log_of_a_demo();
  log.kill_begins(at(1000ms), {kKilled});
  log.add(failed(1001ms, 1002ms, kKilled));
  log.kill_ended(at(1010ms));
  CHECK(log.failed_in_flight() == 1);
  CHECK(log.in_flight_at_kill() == 1);
}

TEST_CASE("call_log: a call that the killed backend had answered was in flight, not failed",
          "[tools][demo]") {
  CallLog log = log_with_a_kill();
  log.add(answered(995ms, 1001ms, kKilled, "primary"));
  CHECK(log.in_flight_at_kill() == 1);
  CHECK(log.failed_in_flight() == 0);
  CHECK(log.failed_other() == 0);
}

TEST_CASE("call_log: a failure without any kill is nobody's but ours", "[tools][demo]") {
  CallLog log = log_of_a_demo();
  log.add(failed(10ms, 11ms, kKilled));
  CHECK(log.failed_other() == 1);
  CHECK(log.in_flight_at_kill() == 0);
}

TEST_CASE("call_log: measures from the first kill to the next cluster's first answer",
          "[tools][demo]") {
  CallLog log = log_with_a_kill();
  CHECK_FALSE(log.failover());
  log.add(answered(1002ms, 1007ms, kLive, "secondary"));
  log.add(answered(1003ms, 1008ms, kLive, "secondary"));
  log.kill_begins(at(2000ms), {"127.0.0.21:4000"});
  CHECK(log.failover() == std::optional<std::chrono::nanoseconds>(7ms));
}

TEST_CASE("call_log: measures from the first cluster's return to its first answer",
          "[tools][demo]") {
  CallLog log = log_with_a_kill();
  // The backend answered this call just before it was killed.
  log.add(answered(999ms, 1030ms, kKilled, "primary"));
  log.primary_back(at(5000ms));
  log.primary_back(at(5001ms));
  CHECK_FALSE(log.failback());
  log.add(answered(5020ms, 5025ms, kKilled, "primary"));
  CHECK(log.failback() == std::optional<std::chrono::nanoseconds>(25ms));
}

TEST_CASE("call_log: counts answers by cluster, and latency from when a call was due",
          "[tools][demo]") {
  CallLog log = log_of_a_demo();
  FinishedCall late = answered(20ms, 30ms, kLive, "secondary");
  late.due = at(10ms);
  log.add(answered(0ms, 5ms, kKilled, "primary"));
  log.add(late);
  log.add(failed(0ms, 1ms, kLive));

  const CallCounts interval = log.take_interval();
  CHECK(interval.calls == 3);
  CHECK(interval.failed == 1);
  CHECK(interval.per_cluster.at("primary") == 1);
  CHECK(interval.latency.count() == 2);
  CHECK(interval.latency.max() == 20'000'000);
  CHECK(log.take_interval().calls == 0);
  CHECK(log.totals().calls == 3);
}

}  // namespace signalbox::tools
