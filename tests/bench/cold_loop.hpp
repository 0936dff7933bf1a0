// SPDX-License-Identifier: Apache-2.0
//
// Time of something done once in a while, as a server does it: with cold caches.
//
//   other work ─▶ ready() ─▶ timed() ─▶ other work … ─▶ p50_ns
//
// Other work stands in for a call and the rest of the program: a walk through more than a
// second-level cache and more pages than a processor remembers.

#pragma once

#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/bench/percentiles.hpp"
#include "tests/bench/ticks.hpp"

namespace signalbox::bench {

class OtherWork {
 public:
  void run() {
    constexpr std::size_t kLine = 64;
    for (std::size_t at = 0; at < memory_.size(); at += kLine)
      ++memory_[at];
    benchmark::ClobberMemory();
  }

 private:
  std::vector<unsigned char> memory_ = std::vector<unsigned char>(std::size_t{8} << 20U);
};

/// Times each timed() by itself, but not the end of what it returns. For UseManualTime().
template <typename Ready, typename Timed>
void cold_loop(benchmark::State& state, const Ready& ready, const Timed& timed) {
  const double overhead = ticks_overhead();
  const double rate = ticks_per_nanosecond();
  OtherWork work;
  std::vector<double> nanoseconds;
  for (auto _ : state) {
    work.run();
    ready();
    const std::uint64_t begin = ticks_now();
    const auto result = timed();
    const std::uint64_t end = ticks_now();
    benchmark::DoNotOptimize(&result);
    nanoseconds.push_back((static_cast<double>(end - begin) - overhead) / rate);
    state.SetIterationTime(nanoseconds.back() * 1e-9);
  }
  state.counters["p50_ns"] = percentile(nanoseconds, 50);
}

}  // namespace signalbox::bench
