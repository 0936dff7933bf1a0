// SPDX-License-Identifier: Apache-2.0
#include "tools/load/live_metrics.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "tests/support/temporary_folder.hpp"

namespace signalbox::tools {
namespace {

constexpr std::int64_t kUs = 1'000;

// Adds a call that is due at `due_ms`, is sent 40 µs later, and ends `took_us` after it was due.
void make_call(LiveCounts& counts, std::int64_t due_ms, std::int64_t took_us, std::uint8_t code) {
  const std::int64_t due = due_ms * 1'000 * kUs;
  counts.add(SentCall{.due_ns = due, .sent_ns = due + 40 * kUs});
  counts.add(EndedCall{.due_ns = due, .ended_ns = due + took_us * kUs, .code = code});
}

LiveCounts some_counts() {
  LiveCounts counts;
  make_call(counts, -3, 500, 0);  // A call of the warm-up.
  make_call(counts, 0, 500, 0);
  make_call(counts, 1, 501, 0);
  make_call(counts, 2, 20'000'000, 4);
  counts.add(SentCall{.due_ns = 3'000 * kUs, .sent_ns = 4'000 * kUs});
  counts.add(SentCall{.due_ns = 4'000 * kUs, .sent_ns = 4'000 * kUs, .is_dropped = true});
  return counts;
}

LiveMetrics some_metrics() {
  return {{"signalbox", "grpc"}, 2, /*is_http=*/false};
}

}  // namespace

TEST_CASE("live counts: calls of the measured part, by what became of them", "[load][live]") {
  const LiveCounts counts = some_counts();
  CHECK(counts.scheduled == 5);
  CHECK(counts.sent == 4);
  CHECK(counts.dropped == 1);
  CHECK(counts.in_flight() == 1);
  CHECK(counts.codes == std::map<int, std::uint64_t>{{0, 2}, {4, 1}});
  CHECK(counts.ok.buckets[3] == 1);  // A bound belongs to its bucket.
  CHECK(counts.ok.buckets[4] == 1);
  CHECK(counts.ok.sum_ns == 1'001 * kUs);
  CHECK(counts.failed.buckets.back() == 1);
  CHECK(counts.lateness.buckets[0] == 3);
}

TEST_CASE("live counts: JSON that is read is the same", "[load][live]") {
  const LiveCounts counts = some_counts();
  const std::string line = live_counts_json(counts).dump();
  CHECK(live_counts_of_json(nlohmann::json::parse(line)) == counts);
}

TEST_CASE("live counts: a call with an end and no sending is not in flight", "[load][live]") {
  LiveCounts counts;
  counts.add(EndedCall{.due_ns = 1, .ended_ns = 2});
  CHECK(counts.in_flight() == 0);
}

TEST_CASE("live metrics: a side is the sum of its processes", "[load][live]") {
  LiveMetrics metrics = some_metrics();
  metrics.set(0, 0, some_counts());
  metrics.set(0, 1, some_counts());
  metrics.set(0, 1, some_counts());  // Newer counts of a process replace the older ones.
  metrics.ended(0, 1);
  metrics.act_was_done("kill \"a\"", true, 1'795.25);
  const std::string text = metrics.text();
  for (const char* line :
       {"signalbox_load_calls_total{side=\"signalbox\",code=\"OK\"} 4\n",
        "signalbox_load_calls_total{side=\"signalbox\",code=\"DEADLINE_EXCEEDED\"} 2\n",
        "signalbox_load_calls_total{side=\"grpc\",code=\"OK\"} 0\n",
        "signalbox_load_scheduled_total{side=\"signalbox\"} 10\n",
        "signalbox_load_sent_total{side=\"signalbox\"} 8\n",
        "signalbox_load_dropped_total{side=\"signalbox\"} 2\n",
        "signalbox_load_in_flight{side=\"signalbox\"} 2\n",
        "signalbox_load_processes{side=\"signalbox\"} 1\n",
        "signalbox_load_processes{side=\"grpc\"} 2\n",
        "signalbox_load_latency_seconds_bucket{side=\"signalbox\",result=\"ok\",le=\"0.0005\"} 2\n",
        "signalbox_load_latency_seconds_bucket{side=\"signalbox\",result=\"ok\",le=\"0.001\"} 4\n",
        "signalbox_load_latency_seconds_count{side=\"signalbox\",result=\"ok\"} 4\n",
        "signalbox_load_latency_seconds_count{side=\"signalbox\",result=\"failed\"} 2\n",
        "signalbox_load_latency_seconds_sum{side=\"signalbox\",result=\"failed\"} 40\n",
        "signalbox_load_lateness_seconds_count{side=\"signalbox\"} 8\n",
        R"(signalbox_load_act_timestamp_seconds{act="kill \"a\"",is_fault="true"} 1795.25)"})
    CHECK_THAT(text, Catch::Contains(line));
}

TEST_CASE("live metrics: without acts there is no metric of acts", "[load][live]") {
  CHECK_THAT(some_metrics().text(), !Catch::Contains("signalbox_load_act"));
}

TEST_CASE("live metrics: calls by HTTP have no code OK", "[load][live]") {
  LiveMetrics metrics({"signalbox"}, 1, /*is_http=*/true);
  CHECK_THAT(metrics.text(), !Catch::Contains("code="));
  LiveCounts counts;
  make_call(counts, 0, 500, 200);
  metrics.set(0, 0, counts);
  const std::string text = metrics.text();
  CHECK_THAT(text, Catch::Contains("calls_total{side=\"signalbox\",code=\"200\"} 1\n"));
  CHECK_THAT(text, !Catch::Contains("code=\"OK\""));
}

#ifdef SIGNALBOX_PROMTOOL
TEST_CASE("live metrics: promtool finds no fault", "[load][live]") {
  LiveMetrics metrics = some_metrics();
  metrics.set(0, 0, some_counts());
  metrics.act_was_done("kill primary", true, 1'795'000'000);
  const test::TemporaryFolder folder;
  const std::string file = folder.write("metrics.txt", metrics.text());
  CHECK(std::system((std::string(SIGNALBOX_PROMTOOL) + " check metrics < " + file).c_str()) == 0);
}
#endif

}  // namespace signalbox::tools
