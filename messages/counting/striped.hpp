// SPDX-License-Identifier: Apache-2.0
//
// Striped counters — counting from many threads; up to eight of them at a time write cache lines of
// their own.
//
//   data-plane threads ─▶ add() on the stripe of the calling thread ─▶ sum() by the collector
//
// A stripe has its own cache lines; a thread writes the same stripe until the thread ends. A call
// may begin on one stripe and end on another, so the value of one stripe may be negative. Only the
// sum over all stripes is meaningful.
//
//   stripes:  │ 0 … 7: each belongs to one living thread │ 8 … 15: shared by all further threads │
//
// A thread with a stripe of its own counts by a load and a store. On a shared stripe it needs an
// atomic addition, which costs twenty times as much and waits for all earlier memory accesses. A
// pick counts several times.
//
// Ordering: add() releases, sum() acquires. When no further increments can come, sums only fall, so
// a sum of zero is final. Tracked::in_use() relies on this.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace signalbox {

inline constexpr std::size_t kStripes = 16;
/// The first stripes, each for one thread alone. Further threads share the other stripes.
inline constexpr std::size_t kOwnStripes = 8;
inline constexpr std::size_t kCacheLine = 64;

/// Gives the calling thread a stripe, at the thread's first count. If a stripe without an owner is
/// free, the thread owns it until the thread ends; else it gets one of the shared stripes, in turn.
/// Takes no lock, but the C++ runtime may take one to note what to do at the thread's end.
std::size_t take_stripe();

/// The stripe of the calling thread + 1; 0: none yet. Constant-initialised, so that a read takes
/// one instruction and no call.
inline constinit thread_local std::size_t stripe_taken = 0;

inline std::size_t this_thread_stripe() {
  return stripe_taken != 0 ? stripe_taken - 1 : take_stripe();
}

/// Adds to a counter in the calling thread's `stripe`.
inline void add_in_stripe(std::atomic<std::int64_t>& counter,
                          std::size_t stripe,
                          std::int64_t amount) {
  if (stripe < kOwnStripes) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_release);
  } else {
    counter.fetch_add(amount, std::memory_order_release);
  }
}

/// N related counters. Within a stripe the N values are side by side, so that a thread that changes
/// several of them touches few cache lines.
template <std::size_t N>
class StripedCounters {
 public:
  void add(std::size_t counter, std::int64_t amount) const {
    const std::size_t stripe = this_thread_stripe();
    add_in_stripe(stripes_[stripe].values[counter], stripe, amount);
  }

  /// Prefetches the cache line that add() will write.
  void prefetch(std::size_t counter) const {
    __builtin_prefetch(&stripes_[this_thread_stripe()].values[counter], 1);
  }

  std::int64_t sum(std::size_t counter) const {
    std::int64_t total = 0;
    for (const Stripe& stripe : stripes_) {
      total += stripe.values[counter].load(std::memory_order_acquire);
    }
    return total;
  }

 private:
  struct alignas(kCacheLine) Stripe {
    std::array<std::atomic<std::int64_t>, N> values{};
  };

  mutable std::array<Stripe, kStripes> stripes_{};
};

}  // namespace signalbox
