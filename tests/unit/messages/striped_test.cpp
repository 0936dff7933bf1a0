// SPDX-License-Identifier: Apache-2.0
#include "messages/counting/striped.hpp"

#include <barrier>
#include <map>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "messages/counting/call_stats.hpp"

namespace signalbox {
namespace {

TEST_CASE("striped: sums what many threads add", "[messages][striped]") {
  constexpr int kThreads = 2 * static_cast<int>(kStripes) + 1;  // More threads than stripes.
  constexpr int kAdds = 1'000;
  const StripedCounters<2> counters;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int add = 0; add < kAdds; ++add)
        counters.add(0, 3);
      counters.add(1, -1);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(counters.sum(0) == 3 * kAdds * kThreads);
  CHECK(counters.sum(1) == -kThreads);
}

TEST_CASE("striped: what begins on one thread may end on another", "[messages][striped]") {
  const StripedCounters<1> counters;
  counters.add(0, 1);
  std::thread([&] { counters.add(0, -1); }).join();
  CHECK(counters.sum(0) == 0);
}

// Runs `count` threads at the same time. Returns for each stripe in use the number of its threads.
std::map<std::size_t, int> stripes_of(std::size_t count) {
  std::vector<std::size_t> taken(count);
  std::barrier all_have_one(static_cast<std::ptrdiff_t>(count));
  std::vector<std::thread> threads;
  for (std::size_t& mine : taken) {
    threads.emplace_back([&] {
      mine = this_thread_stripe();
      all_have_one.arrive_and_wait();
      if (this_thread_stripe() != mine) mine = kStripes;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  std::map<std::size_t, int> holders;
  for (const std::size_t stripe : taken)
    ++holders[stripe];
  return holders;
}

TEST_CASE("striped: threads keep their stripes; the first share none, the others all the rest",
          "[messages][striped]") {
  const std::size_t mine = this_thread_stripe();
  REQUIRE(mine < kOwnStripes);
  // The second round takes the stripes that the threads of the first round gave back.
  for (int time = 0; time < 2; ++time) {
    const auto holders = stripes_of(kOwnStripes - 1 + 2 * (kStripes - kOwnStripes));
    CHECK(holders.size() == kStripes - 1);
    CHECK_FALSE(holders.contains(mine));
    for (const auto& [stripe, count] : holders) {
      CAPTURE(stripe);
      CHECK(stripe < kStripes);
      CHECK(count == (stripe < kOwnStripes ? 1 : 2));
    }
  }
  CHECK(this_thread_stripe() == mine);
}

// Counts in its destructor. The thread makes this object before it takes a stripe, so the object is
// destroyed after the stripe was given back.
struct CountsAtTheEnd {
  explicit CountsAtTheEnd(const StripedCounters<1>& counted) : counters(counted) {}

  ~CountsAtTheEnd() {
    counters.add(0, 1);
    last = this_thread_stripe();
  }

  CountsAtTheEnd(const CountsAtTheEnd&) = delete;
  CountsAtTheEnd& operator=(const CountsAtTheEnd&) = delete;

  const StripedCounters<1>& counters;
  static inline std::size_t last = 0;
};

TEST_CASE("striped: what a thread counts after it gave its stripe back goes to a shared one",
          "[messages][striped]") {
  const StripedCounters<1> counters;
  std::size_t before = kStripes;
  std::thread([&] {
    const thread_local CountsAtTheEnd late(counters);
    before = this_thread_stripe();
    counters.add(0, 1);
  }).join();
  CHECK(before < kOwnStripes);
  CHECK(CountsAtTheEnd::last >= kOwnStripes);
  CHECK(counters.sum(0) == 2);
}

TEST_CASE("striped: stripes share no cache line", "[messages][striped]") {
  CHECK(sizeof(StripedCounters<1>) == kStripes * kCacheLine);
  CHECK(sizeof(StripedCounters<9>) == 2 * kStripes * kCacheLine);
  CHECK(alignof(StripedCounters<1>) == kCacheLine);
}

TEST_CASE("call_stats: each thing counted has its own counter", "[messages][call_stats]") {
  const CallStats stats;
  for (int i = 0; i <= static_cast<int>(PickOutcome::kDrop); ++i) {
    for (int n = 0; n <= i; ++n)
      stats.count_pick(static_cast<PickOutcome>(i));
  }
  stats.count_started();
  stats.count_completed(0);
  stats.count_completed(16);
  stats.count_completed(16);
  CHECK(stats.picks(PickOutcome::kComplete) == 1);
  CHECK(stats.picks(PickOutcome::kQueue) == 2);
  CHECK(stats.picks(PickOutcome::kFail) == 3);
  CHECK(stats.picks(PickOutcome::kDrop) == 4);
  CHECK(stats.started() == 1);
  CHECK(stats.completed(0) == 1);
  CHECK(stats.completed(1) == 0);
  CHECK(stats.completed(16) == 2);
}

TEST_CASE("call_stats: a code that does not exist counts as UNKNOWN", "[messages][call_stats]") {
  const CallStats stats;
  stats.count_completed(-1);
  stats.count_completed(17);
  CHECK(stats.completed(2) == 2);
}

}  // namespace
}  // namespace signalbox
