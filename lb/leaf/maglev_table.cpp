// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/maglev_table.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>

#include "lb/xx_hash.hpp"
#include "messages/invariant.hpp"

namespace signalbox::lb {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();

// An item, and its own order of the slots: `slot`, then each `step` slots further.
struct Builder {
  std::uint32_t item = 0;
  std::uint32_t slot = 0;  // The next slot in the item's order.
  std::uint32_t step = 1;
  std::uint64_t weight = 1;
  std::uint64_t taken = 0;  // How many slots the item has taken.
};

// The round in which a builder next takes a slot. Within a round, builders take turns by index,
// which is the order of their keys.
struct Turn {
  std::uint64_t round = 1;
  std::uint32_t builder = 0;

  friend bool operator>(const Turn& left, const Turn& right) {
    return left.round != right.round ? left.round > right.round : left.builder > right.builder;
  }
};

std::vector<Builder> builders_of(const std::vector<HashItem>& items, std::uint32_t size) {
  std::vector<std::uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t at) { return items[at].key; });
  std::vector<Builder> builders;
  builders.reserve(items.size());
  for (const std::uint32_t at : order) {
    const absl::string_view key = items[at].key;
    builders.push_back({at,
                        static_cast<std::uint32_t>(xx_hash(key) % size),
                        static_cast<std::uint32_t>(xx_hash(key, 1) % (size - 1)) + 1,
                        items[at].weight,
                        0});
  }
  return builders;
}

// The first round after `round` in which an endpoint with `taken` slots may take another:
// round × weight ≥ taken × heaviest. So an endpoint of half the heaviest weight takes a slot about
// every other round.
std::uint64_t next_round(std::uint64_t round, const Builder& builder, std::uint64_t heaviest) {
  if (builder.weight == heaviest) return round + 1;
  const Wide wanted = (Wide{builder.taken} * heaviest + builder.weight - 1) / builder.weight;
  const Wide most = std::numeric_limits<std::uint64_t>::max();
  return std::max(round + 1, static_cast<std::uint64_t>(std::min(wanted, most)));
}

void take_slot(Builder& builder, std::vector<std::uint32_t>& slots) {
  const auto size = static_cast<std::uint32_t>(slots.size());
  const auto advance = [&] {
    const std::uint32_t left = size - builder.slot;
    builder.slot = builder.step >= left ? builder.step - left : builder.slot + builder.step;
  };
  while (slots[builder.slot] != kFree)
    advance();
  slots[builder.slot] = builder.item;
  ++builder.taken;
  advance();
}

}  // namespace

MaglevTable::MaglevTable(const std::vector<HashItem>& items, std::uint32_t size) {
  if (items.empty()) return;
  SIGNALBOX_INVARIANT(size >= 2, "the size of a table is a prime number");
  std::vector<Builder> builders = builders_of(items, size);
  const std::uint64_t heaviest = std::ranges::max(builders, {}, &Builder::weight).weight;
  slots_.assign(size, kFree);
  present_.resize(items.size());

  std::uint32_t filled = 0;
  const auto give = [&](Builder& builder) {
    take_slot(builder, slots_);
    present_[builder.item] = true;
    ++filled;
  };
  const bool alike = std::ranges::all_of(
      builders, [&](const Builder& builder) { return builder.weight == heaviest; });
  while (alike && filled < size) {
    for (std::size_t at = 0; at < builders.size() && filled < size; ++at)
      give(builders[at]);
  }
  // With different weights, a queue of turns avoids visiting items in rounds in which they take no
  // slot.
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  for (std::uint32_t at = 0; at < builders.size() && !alike; ++at)
    turns.push({1, at});
  while (filled < size) {
    Turn turn = turns.top();
    turns.pop();
    give(builders[turn.builder]);
    turn.round = next_round(turn.round, builders[turn.builder], heaviest);
    turns.push(turn);
  }
}

}  // namespace signalbox::lb
