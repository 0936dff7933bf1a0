// SPDX-License-Identifier: Apache-2.0
//
// shrink — searches for a smallest menu (set of faults) with which a seed still breaks the same
// invariant. An invariant is identified by its sentence.

#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/world.hpp"

namespace signalbox::sim {

/// The sentence of the first broken invariant, without the details of the case; "": all held.
std::string sentence_of(const Outcome& outcome);

/// The remaining menu, and whether each of its faults is known to be needed.
struct Shrunk {
  testing::Menu menu;
  bool finished = true;
};

/// Removes faults from the menu of `failed` while the seed still breaks the same first sentence. If
/// the search finishes, each remaining fault is needed: without it the seed does not break that
/// sentence. The order of actors changes with each menu, so the search may miss a smaller menu. The
/// search gives up after about two million steps (kMostSteps).
Shrunk shrink(std::uint64_t seed, const Outcome& failed);

}  // namespace signalbox::sim
