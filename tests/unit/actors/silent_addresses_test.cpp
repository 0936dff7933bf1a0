// SPDX-License-Identifier: Apache-2.0
#include "actors/io/silent_addresses.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace signalbox::actors {
namespace {

using namespace std::chrono_literals;

Address numbered(std::size_t number) {
  return Address("server:" + std::to_string(number));
}

}  // namespace

TEST_CASE("silent addresses: an address is remembered for ten minutes", "[io][connector]") {
  SilentAddresses silent;
  const Instant begin{1h};
  CHECK_FALSE(silent.has(numbered(1), begin));
  silent.add(numbered(1), begin);
  silent.add(numbered(1), begin + 5min);  // Keeps its time.
  CHECK(silent.has(numbered(1), begin + 10min - 1ns));
  CHECK_FALSE(silent.has(numbered(1), begin + 10min));
  silent.add(numbered(1), begin + 11min);
  CHECK(silent.has(numbered(1), begin + 20min));
}

// An O(n) search for each of the addresses beyond the limit would need hours.
TEST_CASE("silent addresses: of a million, ten thousand are remembered at a time",
          "[io][connector][limits]") {
  constexpr std::size_t kMost = SilentAddresses::kMostSilent;
  SilentAddresses silent;
  const Instant begin{1h};
  for (std::size_t i = 0; i < 100 * kMost; ++i)
    silent.add(numbered(i), begin);
  CHECK(silent.has(numbered(kMost - 1), begin));
  CHECK_FALSE(silent.has(numbered(kMost), begin));
  const Instant later = begin + SilentAddresses::kSilentFor;
  for (std::size_t i = kMost; i < 3 * kMost; ++i)
    silent.add(numbered(i), later);
  CHECK_FALSE(silent.has(numbered(kMost - 1), later));
  CHECK(silent.has(numbered(2 * kMost - 1), later));
  CHECK_FALSE(silent.has(numbered(2 * kMost), later));
}

}  // namespace signalbox::actors
