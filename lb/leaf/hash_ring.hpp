// SPDX-License-Identifier: Apache-2.0
//
// HashRing — the points of endpoints on a circle of 2⁶⁴ places (gRFC A42).
//
//   keys and weights ─▶ [HashRing] ─▶ find(hash): the first point at or after it, then the next …
//
// An endpoint has points in proportion to its weight, the n-th at XXH64(key + "_" + n). The
// lightest gets a whole number of them, such that there are at least `min` in all, as long as that
// is not more than `max`. So Envoy and gRPC build it, and clients agree on it.
//
// With more endpoints than `max` some have no point, and get no call.
//
// Immutable. Built in O(points × log points); a pick costs a binary search.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace signalbox::lb {

class HashRing {
 public:
  struct Sizes {
    std::uint64_t min = 1024;
    std::uint64_t max = 4096;  ///< At least min.

    friend bool operator==(const Sizes&, const Sizes&) = default;
  };

  struct Item {
    absl::string_view key;
    std::uint64_t weight = 1;  ///< Not 0.
  };

  HashRing() = default;
  HashRing(const std::vector<Item>& items, Sizes sizes);

  /// How many points there are.
  std::size_t size() const { return hashes_.size(); }

  /// The position of the first point at or after `hash`, going round. Precondition: not empty.
  std::size_t find(std::uint64_t hash) const;

  /// Whether any point is this item's. False for an item that was not given.
  bool has_point(std::size_t item) const { return item < present_.size() && present_[item]; }

  /// Which item (its place among those given) stands at a position.
  std::uint32_t item(std::size_t position) const { return items_[position]; }

 private:
  std::vector<std::uint64_t> hashes_;  // Ascending.
  std::vector<std::uint32_t> items_;   // Of the same.
  std::vector<bool> present_;          // By item.
};

}  // namespace signalbox::lb
