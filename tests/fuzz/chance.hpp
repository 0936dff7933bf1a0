// SPDX-License-Identifier: Apache-2.0
//
// Chance — a small seeded random generator (splitmix64). The same seed gives the same numbers on
// any machine and in any build.

#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace signalbox::fuzz {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t mixed = (state_ += 0x9e3779b97f4a7c15U);
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
  }

  /// In [0, bound); 0 where the bound is 0.
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : next() % bound; }

  bool one_in(std::size_t n) { return below(n) == 0; }

  /// One of the elements. Precondition: there is one.
  template <typename List>
  auto& pick(List& list) {
    return *std::next(std::begin(list), static_cast<std::ptrdiff_t>(below(std::size(list))));
  }

 private:
  std::uint64_t state_;
};

}  // namespace signalbox::fuzz
