// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "messages/counting/tracked.hpp"
#include "messages/counting/use_counter.hpp"
#include "metrics/exporter.hpp"
#include "metrics/instruments.hpp"

namespace signalbox {
namespace {

constexpr std::int64_t kThreads = 4;

template <typename Work>
void on_threads(const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&work, i] { work(static_cast<int>(i)); });
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace

TEST_CASE("striped: what threads begin and others end sums to nothing", "[messages][race]") {
  const StripedCounters<2> counters;
  constexpr std::int64_t kRounds = 20'000;
  std::atomic<bool> done{false};
  std::int64_t seen = 0;
  bool falls = false;
  std::thread collector([&] {
    while (!done) {
      const std::int64_t now = counters.sum(1);
      falls |= now < seen;
      seen = now;
    }
  });
  on_threads([&](int thread) {
    for (int i = 0; i < kRounds; ++i) {
      counters.add(0, thread % 2 == 0 ? 1 : -1);
      counters.add(1, 1);
    }
  });
  done = true;
  collector.join();
  CHECK_FALSE(falls);
  CHECK(counters.sum(0) == 0);
  CHECK(counters.sum(1) == kThreads * kRounds);
}

// Each thread takes more counters than a block has, and gives them back, so that blocks fill up and
// counters change from one thread to another.
TEST_CASE("use counter: what a thread has taken is nobody else's", "[messages][race]") {
  constexpr std::size_t kHeld = 600;
  constexpr int kRounds = 10;
  std::atomic<bool> is_alone{true};
  on_threads([&](int thread) {
    std::vector<UseCounter> held(kHeld);
    for (int round = 0; round < kRounds; ++round) {
      for (UseCounter& counter : held) {
        counter = UseCounter::take();
        counter.add(thread + 1);
      }
      for (const UseCounter& counter : held) {
        if (counter.sum() != thread + 1) is_alone = false;
        counter.add(-(thread + 1));
        counter.give_back();
      }
    }
  });
  CHECK(is_alone);
}

TEST_CASE("metrics: calls are counted while they are collected", "[metrics][race]") {
  const auto instruments = std::make_shared<metrics::Instruments>();
  const metrics::Exporter exporter(instruments);
  constexpr std::int64_t kCalls = 2'000;
  std::atomic<bool> done{false};
  bool silent = false;
  std::thread scraper([&] {
    while (!done)
      silent |= exporter.text().empty();
  });
  on_threads([&](int thread) {
    for (int i = 0; i < kCalls; ++i) {
      const ClusterName cluster(i % 2 == 0 ? "even" : "odd");
      const auto held = instruments->hold_cluster(cluster);
      const auto stats = instruments->call_stats("xds:///orders", cluster);
      stats->count_started();
      stats->count_pick(PickOutcome::kComplete);
      stats->count_completed(thread);
      instruments->add_connections(cluster, i % 4 < 2 ? 1 : -1);
    }
  });
  done = true;
  scraper.join();
  CHECK_FALSE(silent);
  for (const char* name : {"even", "odd"}) {
    const auto stats = instruments->call_stats("xds:///orders", ClusterName(name));
    CHECK(stats->started() == kThreads * kCalls / 2);
    CHECK(stats->completed(1) == kCalls / 2);
    CHECK(stats->picks(PickOutcome::kComplete) == kThreads * kCalls / 2);
  }
}

}  // namespace signalbox
