// SPDX-License-Identifier: Apache-2.0
//
// HashRing — the points of endpoints on a circle of 2⁶⁴ places (gRFC A42).
//
//   keys and weights ─▶ [HashRing] ─▶ find(hash): the first point at or after it, then the next …
//
// Each endpoint has points in proportion to its weight. Its point number n is at
// XXH64(key + "_" + n). The lightest endpoint gets a whole number of points: as few as give the
// ring at least `min` points in all. If that would be more than `max`, the ring has `max` points.
// Envoy and gRPC build the same ring from the same keys, weights and sizes, so all clients map a
// hash to the same endpoint.
//
// An endpoint without a point gets no calls. This happens to light endpoints if `max` limits the
// ring, and whenever there are more endpoints than points.
//
// Immutable. Built in O(points × log points); a pick costs a binary search.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lb/leaf/hash_items.hpp"

namespace signalbox::lb {

class HashRing {
 public:
  struct Sizes {
    std::uint64_t min = 1024;
    std::uint64_t max = 4096;  ///< At least min.

    friend bool operator==(const Sizes&, const Sizes&) = default;
  };

  using Item = HashItem;

  HashRing() = default;
  HashRing(const std::vector<Item>& items, Sizes sizes);

  /// The number of points.
  std::size_t size() const { return hashes_.size(); }

  /// The first point at or after `hash`; after the last point comes the first. Precondition: the
  /// ring is not empty.
  std::size_t find(std::uint64_t hash) const;

  /// Whether the item has a point. False for items unknown to the constructor.
  bool has_point(std::size_t item) const { return item < present_.size() && present_[item]; }

  /// The item that the point belongs to, as its index in the constructor's `items`.
  std::uint32_t item(std::size_t position) const { return items_[position]; }

 private:
  std::vector<std::uint64_t> hashes_;  // The points, ascending.
  std::vector<std::uint32_t> items_;   // The item of each hash.
  std::vector<bool> present_;          // Indexed by item.
};

}  // namespace signalbox::lb
