// SPDX-License-Identifier: Apache-2.0
#include "messages/counting/use_counter.hpp"

#include <array>
#include <bit>

namespace signalbox {

namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

// The counters come first, so that a block begins with the page of stripe 0. give_back() relies on
// this: it finds the block at the start of a counter's page.
struct alignas(kPage) UseCounter::Block {
  Block() {
    for (auto& word : free)
      word.store(~std::uint64_t{0}, std::memory_order_relaxed);
  }

  std::array<Counter, kStripes * kPerBlock> counters{};
  std::array<std::atomic<std::uint64_t>, kPerBlock / 64> free;  // One bit for each counter.
  Block* next = nullptr;  // The next older block; set before other threads see this one.
};

// Blocks are only added, in front, so a thread may walk on from any block that it has seen.
constinit std::atomic<UseCounter::Block*> UseCounter::blocks{nullptr};
// `roomy` and `vacancies` are hints. If a hint is outdated, take() searches once more, or makes one
// block that was not needed.
constinit std::atomic<UseCounter::Block*> UseCounter::roomy{nullptr};
constinit std::atomic<std::int64_t> UseCounter::vacancies{0};

// Takes the lowest free counter, so that objects made one after another share cache lines.
UseCounter UseCounter::take_from(Block& block) {
  for (std::size_t at = 0; at < block.free.size(); ++at) {
    auto& word = block.free[at];
    std::uint64_t free = word.load(std::memory_order_relaxed);
    while (free != 0) {
      const auto lowest = static_cast<std::size_t>(std::countr_zero(free));
      if (word.compare_exchange_weak(
              free, free & (free - 1), std::memory_order_acquire, std::memory_order_relaxed)) {
        vacancies.fetch_sub(1, std::memory_order_relaxed);
        roomy.store(&block, std::memory_order_release);
        return UseCounter(&block.counters[64 * at + lowest]);
      }
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
  vacancies.fetch_add(kPerBlock, std::memory_order_relaxed);
  const UseCounter counter = take_from(*fresh);
  fresh->next = blocks.load(std::memory_order_relaxed);
  while (!blocks.compare_exchange_weak(
      fresh->next, fresh, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return counter;
}

// A use may begin on one stripe and end on another. So the stripes of an unused counter may differ
// from zero, although their sum is zero; each is set to zero for the counter's next user.
void UseCounter::give_back() const {
  for (std::size_t stripe = 0; stripe < kStripes; ++stripe)
    first_[stripe * kPerBlock].store(0, std::memory_order_relaxed);
  static_assert(kPerBlock * sizeof(Counter) == kPage);
  const auto place = reinterpret_cast<std::uintptr_t>(first_) % kPage / sizeof(Counter);
  auto* const block = reinterpret_cast<Block*>(first_ - place);
  block->free[place / 64].fetch_or(std::uint64_t{1} << place % 64, std::memory_order_release);
  vacancies.fetch_add(1, std::memory_order_relaxed);
  roomy.store(block, std::memory_order_release);
}

}  // namespace signalbox
