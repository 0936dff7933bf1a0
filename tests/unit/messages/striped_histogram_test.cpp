// SPDX-License-Identifier: Apache-2.0
#include "messages/counting/striped_histogram.hpp"

#include <array>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "messages/counting/caller_stats.hpp"

namespace signalbox {
namespace {

using namespace std::chrono_literals;
using Counts = std::vector<std::int64_t>;

constexpr std::array<Duration, 2> kBounds{Duration(1ms), Duration(1s)};

TEST_CASE("striped_histogram: a bound belongs to its bucket", "[messages][striped_histogram]") {
  const StripedHistogram histogram(kBounds);
  for (const Duration duration : {Duration(0), Duration(1ms), Duration(1ms) + 1ns, Duration(1h)})
    histogram.record(duration);
  CHECK(histogram.counts().buckets == Counts{2, 1, 1});
  CHECK(histogram.counts().sum == 1h + 2ms + 1ns);
}

TEST_CASE("striped_histogram: a duration is never negative", "[messages][striped_histogram]") {
  const StripedHistogram histogram(kBounds);
  histogram.record(-5s);
  CHECK(histogram.counts().buckets == Counts{1, 0, 0});
  CHECK(histogram.counts().sum == Duration::zero());
}

TEST_CASE("striped_histogram: every bound of latencies ends its own bucket",
          "[messages][striped_histogram]") {
  const StripedHistogram histogram;
  for (const Duration bound : kLatencyBounds)
    histogram.record(bound);
  histogram.record(kLatencyBounds.back() + 1ns);
  CHECK(histogram.counts().buckets == Counts(kLatencyBounds.size() + 1, 1));
}

TEST_CASE("striped_histogram: threads lose no count", "[messages][striped_histogram]") {
  const StripedHistogram histogram(kBounds);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kStripes + 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1'000; ++i)
        histogram.record(2ms);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  const auto calls = static_cast<std::int64_t>(threads.size()) * 1'000;
  CHECK(histogram.counts().buckets == Counts{0, calls, 0});
  CHECK(histogram.counts().sum == calls * Duration(2ms));
}

TEST_CASE("caller_stats: a call counts once, by its code, with its time",
          "[messages][caller_stats]") {
  const CallerStats stats(kBounds);
  stats.count(0, 2ms);
  stats.count(14, 2s);
  stats.count(99, 0s);
  stats.count_call(14);  // Adds no duration.
  CHECK(stats.calls(0) == 1);
  CHECK(stats.calls(2) == 1);
  CHECK(stats.calls(14) == 2);
  CHECK(stats.durations().counts().buckets == Counts{1, 1, 1});
}

TEST_CASE("caller_stats: each reason to wait, with its priority, has its own times",
          "[messages][caller_stats]") {
  const CallerStats stats(kBounds);
  const auto waits = [&](DelayType type) {
    const StripedHistogram* const known = stats.waits_of(type);
    return known == nullptr ? Counts() : known->counts().buckets;
  };
  stats.record_wait({DelayReason::kConnecting}, 0s);
  stats.record_wait({DelayReason::kConnecting, 0}, 2ms);
  stats.record_wait({DelayReason::kFailing, 0}, 2s);
  stats.record_wait({DelayReason::kConnecting, 15}, 2s);
  stats.record_wait({DelayReason::kConnecting, 200}, 2s);  // Counts as 15, the last priority.
  CHECK(waits({DelayReason::kConnecting}) == Counts{1, 0, 0});
  CHECK(waits({DelayReason::kConnecting, 0}) == Counts{0, 1, 0});
  CHECK(waits({DelayReason::kFailing, 0}) == Counts{0, 0, 1});
  CHECK(waits({DelayReason::kConnecting, 15}) == Counts{0, 0, 2});
  CHECK(waits({DelayReason::kResolving}).empty());
  CHECK(waits({DelayReason::kFilterDelay}).empty());
}

TEST_CASE("caller_stats: threads that wait first at once share one histogram",
          "[messages][caller_stats]") {
  const CallerStats stats(kBounds);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&] { stats.record_wait({DelayReason::kResolving}, 1s); });
  for (std::thread& thread : threads)
    thread.join();
  REQUIRE(stats.waits_of({DelayReason::kResolving}) != nullptr);
  CHECK(stats.waits_of({DelayReason::kResolving})->counts().buckets == Counts{0, 8, 0});
}

}  // namespace
}  // namespace signalbox
