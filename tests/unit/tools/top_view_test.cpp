// SPDX-License-Identifier: Apache-2.0
#include "tools/top_view.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::tools {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);  // 2023-11-14T22:13:20Z.

std::vector<MetricSample> read(const std::string& text) {
  auto samples = parse_metrics_text(text);
  REQUIRE(samples.ok());
  return *std::move(samples);
}

const TopRow& row_named(const TopFrame& frame,
                        absl::string_view cluster,
                        absl::string_view aggregate = "") {
  for (const TopRow& row : frame.rows) {
    if (row.cluster == cluster && row.aggregate == aggregate) return row;
  }
  FAIL("there is no row " << aggregate << "/" << cluster);
  return frame.rows.front();
}

constexpr const char* kBefore = R"(
signalbox_xds_connected{xds_server="a"} 1
signalbox_xds_connected{xds_server="b"} 0
signalbox_rpcs_started_total{target="t",cluster="orders"} 0
signalbox_rpcs_started_total{target="t",cluster="first",aggregate="orders"} 100
signalbox_rpcs_completed_total{target="t",cluster="first",code="OK",aggregate="orders"} 100
signalbox_rpcs_started_total{target="t",cluster="lone"} 10
signalbox_rpc_duration_seconds_bucket{cluster="first",aggregate="orders",le="0.01"} 100
signalbox_rpc_duration_seconds_bucket{cluster="first",aggregate="orders",le="0.1"} 100
signalbox_rpc_duration_seconds_bucket{cluster="first",aggregate="orders",le="+Inf"} 100
signalbox_priority_active{cluster="orders"} 0
signalbox_priority_active{cluster="first"} 0
signalbox_endpoints{cluster="first",priority="0",state="ready"} 2
signalbox_endpoints{cluster="first",priority="0",state="connecting"} 1
)";

// The metrics two seconds later: 60 more calls, of which 6 failed, and the second leaf is active.
constexpr const char* kAfter = R"(
signalbox_xds_connected{xds_server="a"} 1
signalbox_xds_connected{xds_server="b"} 0
signalbox_rpcs_started_total{target="t",cluster="orders"} 0
signalbox_rpcs_started_total{target="t",cluster="first",aggregate="orders"} 140
signalbox_rpcs_completed_total{target="t",cluster="first",code="OK",aggregate="orders"} 130
signalbox_rpcs_completed_total{target="t",cluster="first",code="UNAVAILABLE",aggregate="orders"} 6
signalbox_rpcs_started_total{target="t",cluster="second",aggregate="orders"} 20
signalbox_rpcs_completed_total{target="t",cluster="second",code="OK",aggregate="orders"} 24
signalbox_rpcs_active{cluster="first",aggregate="orders"} 4
signalbox_rpcs_started_total{target="t",cluster="lone"} 10
signalbox_rpc_duration_seconds_bucket{cluster="first",aggregate="orders",le="0.01"} 120
signalbox_rpc_duration_seconds_bucket{cluster="first",aggregate="orders",le="0.1"} 136
signalbox_rpc_duration_seconds_bucket{cluster="first",aggregate="orders",le="+Inf"} 136
signalbox_rpc_duration_seconds_bucket{cluster="second",aggregate="orders",le="0.01"} 0
signalbox_rpc_duration_seconds_bucket{cluster="second",aggregate="orders",le="0.1"} 0
signalbox_rpc_duration_seconds_bucket{cluster="second",aggregate="orders",le="+Inf"} 4
signalbox_priority_active{cluster="orders"} 1
signalbox_priority_active{cluster="first"} -1
signalbox_failovers_total{cluster="orders",direction="down",reason="failed"} 1
signalbox_endpoints{cluster="first",priority="0",state="ready"} 0
signalbox_endpoints{cluster="first",priority="0",state="connecting"} 3
)";

}  // namespace

TEST_CASE("top: the first look has no rates, the next one has", "[tools][top]") {
  TopView view;
  const TopFrame first = view.step(read(kBefore), kStart);
  CHECK(first.xds_servers == 2);
  CHECK(first.xds_connected == 1);
  CHECK_FALSE(row_named(first, "orders").calls.per_second);
  CHECK(row_named(first, "first", "orders").ready == 2);
  CHECK(row_named(first, "first", "orders").endpoints == 3);
  CHECK(first.history.empty());

  const TopFrame next = view.step(read(kAfter), kStart + absl::Seconds(2));
  const TopRow& orders = row_named(next, "orders");
  CHECK(orders.calls.per_second == 30);
  CHECK(orders.calls.error_percent == 10);  // 6 of 60 calls failed.
  CHECK(orders.calls.active == 4);
  CHECK(orders.priority == 1);
  CHECK(orders.failovers == 1);
  CHECK_FALSE(orders.endpoints);
  CHECK(row_named(next, "first", "orders").calls.per_second == 20);
  CHECK(row_named(next, "second", "orders").calls.per_second == 10);
  CHECK(row_named(next, "lone").calls.per_second == 0);
  CHECK_FALSE(row_named(next, "lone").calls.error_percent);
  CHECK(next.all.per_second == 30);

  // 20 of 36 calls took at most 10 ms. The median is nine tenths into that bucket.
  const TopCalls& leaf = row_named(next, "first", "orders").calls;
  CHECK(leaf.p50_seconds.value() == Approx(0.009));
  CHECK(leaf.p99_seconds.value() == Approx(0.01 + 0.09 * 15.64 / 16));
  // All calls are in the last bucket, which has no upper bound. Its lower bound is reported.
  CHECK(row_named(next, "second", "orders").calls.p50_seconds.value() == Approx(0.1));
  // The aggregate's histogram is the sum of those of its leaves.
  CHECK(orders.calls.p50_seconds.value() == Approx(0.01));
}

TEST_CASE("top: an aggregate stands before its leaves, and a leaf not beside it", "[tools][top]") {
  TopView view;
  const TopFrame frame = view.step(read(kAfter), kStart);
  std::vector<std::string> order;
  for (const TopRow& row : frame.rows)
    order.push_back(row.aggregate + "/" + row.cluster);
  CHECK(order == std::vector<std::string>{"/lone", "/orders", "orders/first", "orders/second"});
}

TEST_CASE("top: a failover is noted once, with the priorities before and after", "[tools][top]") {
  TopView view;
  view.step(read(kBefore), kStart);
  const TopFrame next = view.step(read(kAfter), kStart + absl::Seconds(2));
  const TopFailover expected{kStart + absl::Seconds(2), "orders", "down", "failed", 1, 0, 1};
  CHECK(next.fresh == std::vector<TopFailover>{expected});
  CHECK(next.history == next.fresh);
  const TopFrame last = view.step(read(kAfter), kStart + absl::Seconds(4));
  CHECK(last.fresh.empty());
  CHECK(last.history == std::vector<TopFailover>{expected});
}

TEST_CASE("top: what happened before the first look is no fresh failover", "[tools][top]") {
  TopView view;
  CHECK(view.step(read(kAfter), kStart).fresh.empty());
  CHECK(view.step(read(kAfter), kStart + absl::Seconds(1)).fresh.empty());
}

TEST_CASE("top: the history is bounded, the newest first", "[tools][top]") {
  TopView view;
  TopFrame frame;
  for (int i = 0; i <= 20; ++i) {
    frame = view.step(
        read("signalbox_failovers_total{cluster=\"c\",direction=\"down\",reason=\"failed\"} " +
             std::to_string(i)),
        kStart + absl::Seconds(i));
  }
  REQUIRE(frame.history.size() == TopView::kHistory);
  CHECK(frame.history.front().seen == kStart + absl::Seconds(20));
}

TEST_CASE("top: after a restart of the process there are no rates for one look", "[tools][top]") {
  TopView view;
  view.step(read(kAfter), kStart);
  const TopFrame restarted = view.step(read(kBefore), kStart + absl::Seconds(1));
  CHECK_FALSE(restarted.all.per_second);
  CHECK(restarted.fresh.empty());
  const TopFrame next = view.step(read(kAfter), kStart + absl::Seconds(3));
  CHECK(next.all.per_second == 30);
}

TEST_CASE("top: calls that the process does not count are not shown as none", "[tools][top]") {
  TopView view;
  const std::vector<MetricSample> samples{
      {"signalbox_priority_active", {{"cluster", "orders"}}, 0}};
  view.step(samples, kStart);
  const TopFrame frame = view.step(samples, kStart + absl::Seconds(1));
  REQUIRE(frame.rows.size() == 1);
  CHECK(frame.rows[0].calls == TopCalls{});
  const auto lines = top_screen(frame, "p", 120, 10);
  CHECK(lines[0] == "22:13:21Z  p  control plane 0/0  calls/s -  errors -  active -");
}

TEST_CASE("top: the screen is a table that fits", "[tools][top]") {
  TopView view;
  view.step(read(kBefore), kStart);
  const TopFrame frame = view.step(read(kAfter), kStart + absl::Seconds(2));
  const auto lines = top_screen(frame, "unix:a.sock", 120, 40);
  std::string all;
  for (const std::string& line : lines)
    all += line + "\n";
  CHECK(all ==
        R"(22:13:22Z  unix:a.sock  control plane 1/2  calls/s 30.0  errors 10.0 %  active 4

CLUSTER   PRIORITY  CALLS/S  ERRORS  ACTIVE      P50      P99  READY  FAILOVERS
lone             -      0.0       -       0        -        -      -          0
orders           1     30.0  10.0 %       4  10.0 ms   100 ms      -          1
  first       none     20.0  16.7 %       4   9.0 ms  98.0 ms    0/3          0
  second         -     10.0   0.0 %       0   100 ms   100 ms      -          0

22:13:22Z  orders: down, failed, priority 0 → 1
)");
  const auto clipped = top_screen(frame, "unix:a.sock", 30, 5);
  REQUIRE(clipped.size() == 5);
  for (const std::string& line : clipped)
    CHECK(line.size() <= 30);
  CHECK(top_screen(frame, "unix:a.sock", 10, 0).empty());
}

TEST_CASE("top: names cannot steer the terminal, and long ones in UTF-8 are cut between characters",
          "[tools][top]") {
  TopView view;
  const TopFrame frame = view.step({{"signalbox_rpcs_started_total", {{"cluster", "\x1b[2J"}}, 1},
                                    {"signalbox_rpcs_started_total", {{"cluster", "größe"}}, 1}},
                                   kStart);
  const auto lines = top_screen(frame, "p", 4, 10);
  CHECK(lines[3] == "\\x1b");
  CHECK(lines[4] == "größ");
}

TEST_CASE("top: lines for a pipe", "[tools][top]") {
  TopView view;
  view.step(read(kBefore), kStart);
  const TopFrame frame = view.step(read(kAfter), kStart + absl::Seconds(2));
  CHECK(top_lines(frame) ==
        R"(time=2023-11-14T22:13:22.000Z cluster=lone calls_per_second=0 active=0 failovers=0
time=2023-11-14T22:13:22.000Z cluster=orders priority=1 calls_per_second=30 error_percent=10 active=4 p50_ms=10 p99_ms=100 failovers=1
time=2023-11-14T22:13:22.000Z cluster=first aggregate=orders priority=-1 calls_per_second=20 error_percent=16.6667 active=4 p50_ms=9 p99_ms=97.975 ready=0 endpoints=3 failovers=0
time=2023-11-14T22:13:22.000Z cluster=second aggregate=orders calls_per_second=10 error_percent=0 active=0 p50_ms=100 p99_ms=100 failovers=0
time=2023-11-14T22:13:22.000Z cluster=orders failover=down reason=failed times=1 from=0 to=1
)");
  TopView strange;
  CHECK(top_lines(
            strange.step({{"signalbox_priority_active", {{"cluster", "a \"b\"\n"}}, 0}}, kStart)) ==
        "time=2023-11-14T22:13:20.000Z cluster=\"a \\\"b\\\"\\n\" priority=0 failovers=0\n");
}

}  // namespace signalbox::tools
