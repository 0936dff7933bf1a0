// SPDX-License-Identifier: Apache-2.0
//
// cold_loop — times a piece of code with cold caches, as in a server that does other work between
// two executions of the code.
//
//   other work ─▶ ready() ─▶ timed() ─▶ other work … ─▶ p50_ns

#pragma once

#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/bench/other_work.hpp"
#include "tests/bench/percentiles.hpp"
#include "tests/bench/ticks.hpp"

namespace signalbox::bench {

/// Times timed() alone, each time after other work and ready(). The destruction of timed()'s result
/// is not timed. The caller must register the benchmark with UseManualTime().
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
