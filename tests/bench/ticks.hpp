// SPDX-License-Identifier: Apache-2.0
//
// Times as short as a pick: the processor's counter of ticks, and the cost of reading it.
//
//   begin = ticks_now() … ticks_now() - begin ─▶ samples
//      ─▶ less ticks_overhead() ─▶ by ticks_per_nanosecond() ─▶ ns
//
// The benchmark's client and the shim that times gRPC's picks share this file, so that signalbox's
// and gRPC's picks are timed and corrected in the same way.

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace signalbox::bench {

/// On x86-64, the counter's value once all earlier instructions have been executed. Elsewhere, the
/// steady clock.
inline std::uint64_t ticks_now() {
#if defined(__x86_64__)
  unsigned core = 0;
  return __rdtscp(&core);
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// The ticks that a measurement of nothing shows: the median of many such measurements.
inline double ticks_overhead() {
  constexpr std::size_t kReadings = 10'001;
  std::vector<std::uint64_t> readings;
  for (std::size_t i = 0; i < kReadings; ++i) {
    const std::uint64_t begin = ticks_now();
    readings.push_back(ticks_now() - begin);
  }
  std::nth_element(readings.begin(), readings.begin() + kReadings / 2, readings.end());
  return static_cast<double>(readings[kReadings / 2]);
}

inline double ticks_per_nanosecond() {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const std::uint64_t begin = ticks_now();
  while (Clock::now() - start < std::chrono::milliseconds(50)) {
  }
  const std::uint64_t ticks = ticks_now() - begin;
  return static_cast<double>(ticks) /
         std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

}  // namespace signalbox::bench
