// SPDX-License-Identifier: Apache-2.0
//
// shrink — the smallest fault menu with which a seed still breaks the same sentence.

#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/world.hpp"

namespace signalbox::sim {

/// The sentence itself: what was said of the case at hand is left out.
std::string sentence_of(const Outcome& outcome);

/// The menu that is left, and whether all of it is known to be needed.
struct Shrunk {
  testing::Menu menu;
  bool finished = true;
};

/// Takes fault after fault off the menu of `failed` for as long as the seed still breaks the first
/// sentence that it broke. Every fault that is left is needed; the order of actors is part of the
/// seed and changes with each, so that a smaller menu may exist that this way does not lead to.
/// After some two million steps (kMostSteps) it is content with what it has.
Shrunk shrink(std::uint64_t seed, const Outcome& failed);

}  // namespace signalbox::sim
