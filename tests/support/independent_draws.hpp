// SPDX-License-Identifier: Apache-2.0
//
// independent_draws — whether a random decision of a call depends on the call's other ones. Each
// decision draws with a Salt of its own (messages/pick.hpp).
//
//   seeds ─▶ decision: yes or no ─▶ those for which another Salt drew 0 ─▶ [check_independent]

#pragma once

#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "messages/pick.hpp"

namespace signalbox::test {

/// Checks that `decision` is true for `share` of the calls, whatever the other decisions drew.
/// `own`: the Salt of the decision. `decision`: takes the seed of a call.
template <typename Decision>
void check_independent(Salt own, double share, const Decision& decision) {
  constexpr std::uint64_t kSeeds = 8'000;
  std::vector<bool> decided;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    decided.push_back(decision(seed));
  for (const Salt other : {Salt::kRouteFraction,
                           Salt::kWeightedCluster,
                           Salt::kLocality,
                           Salt::kEndpoint,
                           Salt::kRequestHash,
                           Salt::kDrop,
                           Salt::kFaultDelay,
                           Salt::kFaultAbort,
                           Salt::kTier}) {
    if (other == own) continue;
    int calls = 0;
    int yes = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      if (draw_below(seed, other, 2) != 0) continue;
      ++calls;
      yes += decided[seed] ? 1 : 0;
    }
    CAPTURE(static_cast<int>(other));
    CHECK(yes == Approx(calls * share).margin(200));
  }
}

}  // namespace signalbox::test
