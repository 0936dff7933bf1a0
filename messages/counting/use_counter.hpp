// SPDX-License-Identifier: Apache-2.0
//
// UseCounter — one striped count out of a common store, for objects of which there are thousands.
//
//   Tracked ─▶ take() ◀─ [store: blocks of 512 counters × 16 stripes] ◀─ give_back() ◀─ ~Tracked
//
//   block:  page of stripe 0: │ counter 0 │ counter 1 │ … │ counter 511 │
//           page of stripe 1: │ counter 0 │ counter 1 │ … │ counter 511 │   and so on
//
// Stripes as in striped.hpp, but a thread's line is shared by eight counters, and its page by 512:
// a round_robin that goes from one connection to the next touches a new cache line every eighth
// time, and calls that go anywhere among a thousand connections touch two pages. A counter costs
// 136 bytes. Each line still belongs to one stripe of threads.
//
// take() and give_back() are like allocating: thread-safe, lock-free, never on the path of a pick.
// take() looks where something was taken or given back last, and then at every block; if nothing
// is free it looks nowhere. Blocks are kept for ever: as many as were needed at once.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "messages/counting/striped.hpp"

namespace signalbox {

/// A handle, copied like a pointer; good until give_back().
class UseCounter {
 public:
  /// Good for nothing but to be assigned to.
  UseCounter() = default;

  /// A counter of nobody else's, at zero.
  static UseCounter take();

  /// Precondition: nobody adds to it any more.
  void give_back() const;

  void add(std::int64_t amount) const {
    const std::size_t stripe = this_thread_stripe();
    add_in_stripe(first_[stripe * kPerBlock], stripe, amount);
  }

  /// Asks for the cache line that add() will write.
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
  static constexpr std::size_t kPerBlock = 512;  // A page of a stripe's.

  explicit UseCounter(Counter* first) : first_(first) {}

  /// Without a first_ if the block has no free counter.
  static UseCounter take_from(Block& block);

  // The store, newest first; a block that may have room; and how many counters are free in all.
  static std::atomic<Block*> blocks;
  static std::atomic<Block*> roomy;
  static std::atomic<std::int64_t> vacancies;

  Counter* first_ = nullptr;  // Of stripe 0; those of the others follow, a page apart.
};

}  // namespace signalbox
