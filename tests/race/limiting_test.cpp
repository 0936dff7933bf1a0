// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/request_limit.hpp"

namespace signalbox::lb {
namespace {

constexpr int kThreads = 4;

template <typename Work>
void on_threads(const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads)
    thread.join();
}

void raise(std::atomic<std::int64_t>& highest, std::int64_t seen) {
  std::int64_t known = highest.load();
  while (known < seen && !highest.compare_exchange_weak(known, seen)) {
  }
}

}  // namespace

// Threads take slots of the limit and give slots back, in bursts. A slot that one thread took,
// another thread may give back. One atomic number counts the taken slots beside the limit's own
// count.
TEST_CASE("request_limit: is kept under threads, and nothing is lost",
          "[lb][cluster_impl][race][A32][A37-29]") {
  const std::uint32_t most = GENERATE(1U, 5U, 130U, 400U);
  const RequestLimit limit;
  std::atomic<std::int64_t> inside{0};
  std::atomic<std::int64_t> highest{0};
  // The number of slots taken and not yet given back; any thread may give them back.
  std::atomic<std::int64_t> owed{0};
  on_threads([&](int thread) {
    for (int round = 0; round < 300; ++round) {
      const int burst = 1 + (round * 7 + thread * 13) % 150;
      for (int i = 0; i < burst && limit.take(most); ++i) {
        raise(highest, ++inside);
        ++owed;
      }
      for (int i = 0; i < burst; ++i) {
        std::int64_t left = owed.load();
        while (left > 0 && !owed.compare_exchange_weak(left, left - 1)) {
        }
        if (left <= 0) break;
        --inside;
        limit.put_back(most);
      }
    }
  });
  for (; owed > 0; --owed) {
    --inside;
    limit.put_back(most);
  }
  CHECK(highest <= std::int64_t{most});
  CHECK(inside == 0);
  CHECK(limit.in_flight() == 0);
  std::uint32_t taken = 0;
  while (limit.take(most))
    ++taken;
  CHECK(taken == most);
}

TEST_CASE("request_limit: a limit that falls under threads is kept from then on",
          "[lb][cluster_impl][race][A32]") {
  const RequestLimit limit;
  std::atomic<std::uint32_t> most{600};
  std::atomic<bool> done{false};
  std::thread config([&] {
    for (int i = 0; i < 200; ++i)
      most = i % 2 == 0 ? 3 : 600;
    done = true;
  });
  on_threads([&](int) {
    do {
      const std::uint32_t now = most;
      std::uint32_t taken = 0;
      while (taken < 100 && limit.take(now))
        ++taken;
      while (taken-- > 0)
        limit.put_back(most);
    } while (!done);
  });
  config.join();
  CHECK(limit.in_flight() == 0);
  std::uint32_t taken = 0;
  while (limit.take(3))
    ++taken;
  CHECK(taken == 3);
}

TEST_CASE("request_limits: are made and forgotten while others ask",
          "[lb][cluster_impl][race][A37-29]") {
  RequestLimits limits;
  on_threads([&](int) {
    for (int i = 0; i < 500; ++i) {
      const auto limit = limits.of(ClusterName(std::to_string(i % 40)), "");
      if (limit->take(1000)) limit->put_back(1000);
    }
  });
  const auto limit = limits.of(ClusterName("1"), "");
  CHECK(limit->in_flight() == 0);
}

}  // namespace signalbox::lb
