// SPDX-License-Identifier: Apache-2.0
#include "messages/use_counter.hpp"

#include <array>
#include <bit>

namespace signalbox {

// Counters come first, so that the line of stripe 0 is where the block begins.
struct alignas(kCacheLine) UseCounter::Block {
  std::array<Counter, kStripes * kPerLine> counters{};
  std::atomic<std::uint32_t> free{(1U << kPerLine) - 1};  // A bit for each counter.
  Block* next = nullptr;                                  // Older; set before others see it.
};

// Blocks are only ever added, in front: whoever has seen one may walk on from there.
constinit std::atomic<UseCounter::Block*> UseCounter::blocks{nullptr};
// Hints: whoever follows one that is out of date looks once more, or makes a block more.
constinit std::atomic<UseCounter::Block*> UseCounter::roomy{nullptr};
constinit std::atomic<std::int64_t> UseCounter::vacancies{0};

// The lowest that is free: neighbours in a line go to objects that are made one after another.
UseCounter UseCounter::take_from(Block& block) {
  std::uint32_t free = block.free.load(std::memory_order_relaxed);
  while (free != 0) {
    const auto lowest = static_cast<std::size_t>(std::countr_zero(free));
    if (block.free.compare_exchange_weak(
            free, free & (free - 1), std::memory_order_acquire, std::memory_order_relaxed)) {
      vacancies.fetch_sub(1, std::memory_order_relaxed);
      roomy.store(&block, std::memory_order_release);
      return UseCounter(&block.counters[lowest]);
    }
  }
  return {};
}

UseCounter UseCounter::take() {
  if (vacancies.load(std::memory_order_relaxed) > 0) {
    Block* const hint = roomy.load(std::memory_order_acquire);
    const UseCounter near = hint != nullptr ? take_from(*hint) : UseCounter();
    if (near.first_ != nullptr) return near;
    for (Block* block = blocks.load(std::memory_order_acquire); block != nullptr;
         block = block->next) {
      const UseCounter counter = take_from(*block);
      if (counter.first_ != nullptr) return counter;
    }
  }
  auto* const fresh = new Block;
  vacancies.fetch_add(kPerLine, std::memory_order_relaxed);
  const UseCounter counter = take_from(*fresh);
  fresh->next = blocks.load(std::memory_order_relaxed);
  while (!blocks.compare_exchange_weak(
      fresh->next, fresh, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return counter;
}

// What was added on one stripe may have been taken off on another: each is set to zero.
void UseCounter::give_back() const {
  for (std::size_t stripe = 0; stripe < kStripes; ++stripe)
    first_[stripe * kPerLine].store(0, std::memory_order_relaxed);
  const auto place = reinterpret_cast<std::uintptr_t>(first_) % kCacheLine / sizeof(Counter);
  auto* const block = reinterpret_cast<Block*>(first_ - place);
  block->free.fetch_or(1U << place, std::memory_order_release);
  vacancies.fetch_add(1, std::memory_order_relaxed);
  roomy.store(block, std::memory_order_release);
}

}  // namespace signalbox
