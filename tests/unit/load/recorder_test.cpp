// SPDX-License-Identifier: Apache-2.0
#include "tools/load/recorder.hpp"

#include <chrono>
#include <cstdint>
#include <string>

#include <catch2/catch.hpp>

#include "tools/load/call_code.hpp"

namespace signalbox::tools::recorder_test {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kMs = 1'000'000;

void make_call(LoadRecorder& recorder,
               std::int64_t due_ms,
               std::int64_t took_ms,
               std::uint32_t endpoint = 1,
               std::uint16_t code = 0,
               bool is_closed_loop = true) {
  recorder.sent({.due_ns = due_ms * kMs, .sent_ns = due_ms * kMs + 1000});
  recorder.ended({.due_ns = due_ms * kMs,
                  .sent_ns = due_ms * kMs + 1000,
                  .ended_ns = (due_ms + took_ms) * kMs,
                  .endpoint = endpoint,
                  .code = code,
                  .is_closed_loop = is_closed_loop});
}

LoadSide finished(LoadRecorder& recorder, int ran_s = 1) {
  return recorder.finish(seconds(ran_s), kMostLatenessP99Ns, {});
}

}  // namespace

TEST_CASE("recorder: calls stand in the bin in which they were due", "[load][recorder]") {
  LoadRecorder recorder("signalbox", 0, seconds(1));
  recorder.add_endpoint("127.0.0.1:1");
  make_call(recorder, -5, 3);  // A call of the warm-up.
  make_call(recorder, 99, 500);
  make_call(recorder, 100, 7);
  make_call(recorder, 150, 9, 1, 14);
  const LoadSide side = finished(recorder);
  REQUIRE(side.bins.size() == 10);
  CHECK(side.bins[0].codes == std::map<int, std::uint64_t>{{0, 1}});
  CHECK(side.bins[0].max_ns == 500 * kMs);
  CHECK(side.bins[1].codes == std::map<int, std::uint64_t>{{0, 1}, {14, 1}});
  CHECK(side.bins[1].p99_ns == 7 * kMs);
  CHECK(side.bins[1].shares.at(0).failed == 1);
  CHECK(side.ok == 2);
  CHECK(side.failed == 1);
  CHECK(side.validity.scheduled == 3);
  CHECK(side.from_due.count() == 2);
  CHECK(side.failed_from_due.max() == 9 * kMs);
  CHECK(side.validity.is_valid);
}

TEST_CASE("recorder: an HTTP call failed with a status of 500 or more, or without a response",
          "[load][recorder]") {
  LoadRecorder recorder("signalbox", 0, seconds(1));
  recorder.add_endpoint("127.0.0.1:1");
  make_call(recorder, 0, 1, 1, 200);
  make_call(recorder, 0, 2, 1, 404);
  make_call(recorder, 0, 3, 1, 503);
  make_call(recorder, 0, 4, 1, kCurlErrors + 7);
  const LoadSide side = finished(recorder);
  CHECK(side.ok == 2);
  CHECK(side.failed == 2);
  CHECK(side.codes ==
        std::map<int, std::uint64_t>{{200, 1}, {404, 1}, {503, 1}, {kCurlErrors + 7, 1}});
}

TEST_CASE("recorder: a call counts for the place that its endpoint has then", "[load][recorder]") {
  LoadRecorder recorder("signalbox", 0, seconds(1));
  recorder.place("127.0.0.1:1", {.place = {.cluster = "orders", .priority = 0}, .rank = 0});
  recorder.add_endpoint("127.0.0.1:1");
  recorder.add_endpoint("127.0.0.1:2");
  make_call(recorder, 10, 1, 1);
  recorder.place("127.0.0.1:1", {.place = {.cluster = "orders", .priority = 1}, .rank = 1});
  make_call(recorder, 11, 1, 1);
  make_call(recorder, 12, 1, 2);
  make_call(recorder, 13, 1, EndedCall::kNoEndpoint, 14);
  const LoadSide side = finished(recorder);
  CHECK(side.places == std::vector<LoadPlace>{{.cluster = "unknown", .priority = {}},
                                              {.cluster = "orders", .priority = 0},
                                              {.cluster = "orders", .priority = 1}});
  REQUIRE(side.bins[0].shares.size() == 4);
  CHECK(side.bins[0].shares[0].place == 1);
  CHECK(side.bins[0].shares[1].place == 2);
  CHECK(side.bins[0].shares[2].place == 0);
  CHECK(side.endpoints[1].place == 2);
  CHECK(side.endpoints[1].ok == 2);
  CHECK(side.endpoints[0].failed == 1);
}

TEST_CASE("recorder: faults get their figures", "[load][recorder]") {
  LoadRecorder recorder("signalbox", 0, seconds(20));
  recorder.place("a", {.place = {.cluster = "orders", .priority = 0}, .rank = 0});
  recorder.place("b", {.place = {.cluster = "orders", .priority = 1}, .rank = 1});
  recorder.add_endpoint("a");
  recorder.add_endpoint("b");
  for (std::int64_t i = 0; i < 600; ++i)
    make_call(recorder, i * 10, 2, 1);
  recorder.act_began(6000 * kMs, true);
  for (std::int64_t i = 600; i < 700; ++i)
    make_call(recorder, i * 10, 1, 1, 14);
  for (std::int64_t i = 700; i < 2000; ++i)
    make_call(recorder, i * 10, 2, 2);
  const LoadSide side = finished(recorder, 20);
  REQUIRE(side.faults.size() == 1);
  CHECK(side.faults[0].lost == 100);
  CHECK(side.faults[0].first_success_ns == 1002 * kMs);
  CHECK(side.faults[0].recovery_ns == 1000 * kMs);
  CHECK(side.faults[0].baseline_p99_ns > 0);
}

TEST_CASE("recorder: unanswered calls and the closed loop's calls are counted",
          "[load][recorder]") {
  LoadRecorder recorder("grpc", 0, seconds(1));
  recorder.add_endpoint("a");
  recorder.sent({.due_ns = 5, .sent_ns = 6});
  make_call(recorder, 10, 2);
  make_call(recorder, 20, 900, 1, 0, /*is_closed_loop=*/false);
  const LoadSide side = finished(recorder);
  CHECK(side.unanswered == 1);
  CHECK(side.closed_loop.count() == 1);
  CHECK(side.closed_loop_skipped == 1);
}

TEST_CASE("recorder: the reachable rate is that of the best whole second", "[load][recorder]") {
  LoadRecorder recorder("signalbox", 0, seconds(3));
  recorder.add_endpoint("a");
  for (const std::int64_t due_ms : {100, 1100, 1200, 2100, 2200, 2300})
    make_call(recorder, due_ms, 1);
  const auto reachable = [&recorder](std::chrono::milliseconds ran) {
    return recorder.finish(ran, kMostLatenessP99Ns, {}).validity.reachable_rate;
  };
  SECTION("not of a second that the run did not finish") {
    CHECK(reachable(std::chrono::milliseconds(2500)) == 2);
  }
  SECTION("of a finished one") {
    CHECK(reachable(std::chrono::milliseconds(3000)) == 3);
  }
  SECTION("and without one the rate on average") {
    CHECK(reachable(std::chrono::milliseconds(500)) == 12);
  }
}

TEST_CASE("recorder: a stream is one call, and its messages are counted", "[load][recorder]") {
  LoadRecorder recorder("signalbox", 0, seconds(1));
  recorder.add_endpoint("a");
  const auto make_stream =
      [&recorder](
          std::int64_t due_ms, std::int64_t first_ms, std::uint32_t messages, std::uint8_t code) {
        recorder.sent({.due_ns = due_ms * kMs, .sent_ns = due_ms * kMs});
        recorder.ended({.due_ns = due_ms * kMs,
                        .sent_ns = due_ms * kMs,
                        .ended_ns = (due_ms + 200) * kMs,
                        .first_message_ns = (due_ms + first_ms) * kMs,
                        .endpoint = 1,
                        .stream_messages = messages,
                        .code = code});
      };
  make_stream(-50, 7, 9, 0);  // A call of the warm-up.
  make_stream(10, 3, 5, 0);
  make_stream(20, 4, 2, 14);  // The server died in the middle.
  make_stream(30, 0, 0, 0);   // A stream without messages.
  const LoadSide side = finished(recorder);
  CHECK(side.ok == 2);
  CHECK(side.failed == 1);
  CHECK(side.stream_messages == 7);
  CHECK(side.from_due.count() == 2);
  CHECK(side.from_due.max() == 200 * kMs);
  CHECK(side.first_message.count() == 1);
  CHECK(side.first_message.max() == 3 * kMs);
}

TEST_CASE("recorder: a second is taken once", "[load][recorder]") {
  LoadRecorder recorder("signalbox", 0, seconds(1));
  recorder.add_endpoint("a");
  make_call(recorder, 10, 2);
  make_call(recorder, 11, 2, 1, 14);
  recorder.sent({.due_ns = 5, .sent_ns = 6, .is_dropped = true});
  const LoadSecond second = recorder.take_second();
  CHECK(second.sent == 2);
  CHECK(second.ok == 1);
  CHECK(second.failed == 1);
  CHECK(second.dropped == 1);
  CHECK(second.p99_ns == 2 * kMs);
  CHECK(recorder.take_second().sent == 0);
}

TEST_CASE("recorder: only the most frequent messages are kept", "[load][recorder]") {
  LoadRecorder recorder("signalbox", 0, seconds(1));
  std::map<std::string, std::uint64_t> messages;
  for (std::uint64_t i = 1; i <= 30; ++i)
    messages[std::to_string(i)] = i;
  const LoadSide side = recorder.finish(seconds(1), kMostLatenessP99Ns, messages);
  CHECK(side.messages.size() == 20);
  CHECK(side.messages.contains("11"));
  CHECK_FALSE(side.messages.contains("10"));
}

TEST_CASE("validity: a measurement needs calls that were sent in time", "[load][recorder]") {
  struct Row {
    LoadValidity validity;
    const char* reason;
  };

  const Row row = GENERATE(
      Row{{.scheduled = 1000, .sent = 999, .lateness_p99_ns = 1'000'000}, ""},
      Row{{.scheduled = 1000, .sent = 998, .reachable_rate = 7}, "2 of 1000 calls were not sent"},
      Row{{.scheduled = 1000, .sent = 998, .reachable_rate = 7}, "could send 7 calls a second"},
      Row{{.scheduled = 1000, .sent = 1000, .lateness_p99_ns = 1'000'001}, "1.000 ms late"},
      Row{{.scheduled = 10,
           .sent = 10,
           .lateness_p99_ns = 9'000'000,
           .lateness_limit_ns = 10'000'000},
          ""},
      Row{{}, "no call was due"});
  LoadValidity validity = row.validity;
  judge(validity);
  CHECK(validity.is_valid == std::string(row.reason).empty());
  CHECK_THAT(validity.reason, Catch::Contains(row.reason));
}

}  // namespace signalbox::tools::recorder_test
