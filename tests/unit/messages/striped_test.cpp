// SPDX-License-Identifier: Apache-2.0
#include "messages/striped.hpp"

#include <set>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "messages/call_stats.hpp"

namespace signalbox {
namespace {

TEST_CASE("striped: sums what many threads add", "[messages][striped]") {
  constexpr int kThreads = 2 * static_cast<int>(kStripes) + 1;  // More than there are stripes.
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

TEST_CASE("striped: a thread keeps its stripe, and neighbours get others", "[messages][striped]") {
  const std::size_t mine = this_thread_stripe();
  CHECK(this_thread_stripe() == mine);
  std::set<std::size_t> stripes;
  for (std::size_t i = 0; i < kStripes; ++i) {
    std::thread([&] { stripes.insert(this_thread_stripe()); }).join();
  }
  CHECK(stripes.size() == kStripes);
  CHECK(*stripes.rbegin() == kStripes - 1);
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
