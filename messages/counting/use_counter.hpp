// SPDX-License-Identifier: Apache-2.0
//
// UseCounter — a striped counter from a common store, for objects that exist by the thousand.
//
//   Tracked ─▶ take() ◀─ [store: blocks of 512 counters × 16 stripes] ◀─ give_back() ◀─ ~Tracked
//
//   block:  page of stripe 0: │ counter 0 │ counter 1 │ … │ counter 511 │
//           page of stripe 1: │ counter 0 │ counter 1 │ … │ counter 511 │   and so on
//
// The stripes are those of striped.hpp, so threads with a stripe of their own share no cache line.
// But eight counters share a stripe's cache line, and 512 share its page, because a process may
// have thousands of connections. A thread that calls successive connections touches a new cache
// line every eighth time. A thread that calls any of a thousand connections touches two pages. A
// counter costs 136 bytes.
//
// take() and give_back() are as costly as an allocation, thread-safe, and never on the path of a
// pick. take() tries the block that was used last, and then every block. If the store has no free
// counter, take() allocates a new block at once; otherwise neither function takes a lock. Blocks
// are never freed, so their number is about that of the busiest moment.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "messages/counting/striped.hpp"

namespace signalbox {

/// A handle to one counter of the store. Copies lead to the same counter, until give_back().
class UseCounter {
 public:
  /// An empty handle. It must be assigned before it is used.
  UseCounter() = default;

  /// A counter at zero that no other handle uses.
  static UseCounter take();

  /// Gives the counter back to the store. Precondition: add() is not called any more.
  void give_back() const;

  void add(std::int64_t amount) const {
    const std::size_t stripe = this_thread_stripe();
    add_in_stripe(first_[stripe * kPerBlock], stripe, amount);
  }

  /// Prefetches the cache line that add() will write.
  void prefetch() const { __builtin_prefetch(first_ + this_thread_stripe() * kPerBlock, 1); }

  std::int64_t sum() const {
    std::int64_t total = 0;
    for (std::size_t stripe = 0; stripe < kStripes; ++stripe)
      total += first_[stripe * kPerBlock].load(std::memory_order_acquire);
    return total;
  }

 private:
  using Counter = std::atomic<std::int64_t>;
  struct Block;
  static constexpr std::size_t kPerBlock = 512;  // The counters of one stripe fill a page.

  explicit UseCounter(Counter* first) : first_(first) {}

  /// An empty handle if the block has no free counter.
  static UseCounter take_from(Block& block);

  // `blocks`: the newest block of the store. `roomy`: a block that may have a free counter.
  // `vacancies`: the number of free counters in all blocks.
  static std::atomic<Block*> blocks;
  static std::atomic<Block*> roomy;
  static std::atomic<std::int64_t> vacancies;

  Counter* first_ = nullptr;  // The counter in stripe 0; its other stripes follow, a page apart.
};

}  // namespace signalbox
