// SPDX-License-Identifier: Apache-2.0
//
// MaglevTable — Envoy's Maglev table: each slot belongs to one endpoint.
//
//   keys and weights ─▶ [MaglevTable] ─▶ find(hash): the endpoint of slot hash mod size
//
// Each endpoint has its own order of all slots. The order begins at XXH64(key) mod size, and
// advances by 1 + XXH64(key, seed 1) mod (size - 1). Endpoints take turns, in the order of their
// keys, and take the first free slot of their own order. The heaviest endpoint has a turn in every
// round, the others in proportion to their weights. Envoy builds the same table.
//
// If an endpoint leaves, the others get its slots. A few slots also move between the other
// endpoints; the larger the table, the smaller their share.
//
// Immutable. A table of n slots takes 4n bytes, and about n × log n steps to build.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lb/leaf/hash_items.hpp"

namespace signalbox::lb {

class MaglevTable {
 public:
  MaglevTable() = default;

  /// `size` is a prime number, at most 2³¹. No item gets a second slot before each has one. If
  /// there are more items than slots, some items get no slot.
  MaglevTable(const std::vector<HashItem>& items, std::uint32_t size);

  /// The number of slots; 0 without items.
  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }

  /// The slot of a hash. Precondition: there are slots.
  std::uint32_t find(std::uint64_t hash) const {
    return static_cast<std::uint32_t>(hash % slots_.size());
  }

  /// The item of a slot, as its index in the constructor's `items`.
  std::uint32_t item(std::uint32_t slot) const { return slots_[slot]; }

  /// Whether the item has a slot. False for items unknown to the constructor.
  bool has_slot(std::size_t item) const { return item < present_.size() && present_[item]; }

 private:
  std::vector<std::uint32_t> slots_;
  std::vector<bool> present_;  // Indexed by item.
};

}  // namespace signalbox::lb
