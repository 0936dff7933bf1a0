// SPDX-License-Identifier: Apache-2.0
//
// FakeChance — random numbers from a seed. Equal seeds give equal numbers in every process
// (splitmix64).

#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "messages/ids.hpp"

namespace signalbox::testing {

class FakeChance {
 public:
  explicit FakeChance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
  }

  /// A number in [0, bound), all nearly equally likely. Precondition: `bound` is not 0.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }

  bool percent(unsigned chance) { return below(100) < chance; }

  /// A duration in [low, high], all nearly equally likely.
  Duration between(Duration low, Duration high) {
    return low + Duration(static_cast<Duration::rep>(
                     next() % static_cast<std::uint64_t>((high - low).count() + 1)));
  }

  template <typename T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace signalbox::testing
