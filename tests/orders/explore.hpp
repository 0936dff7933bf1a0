// SPDX-License-Identifier: Apache-2.0
//
// explore — searches all orders of a Story, the shortest first.
//
//   Story ─▶ explore() ─▶ states by depth ─▶ Report: counts, or the shortest trace to a broken rule
//
// The search is breadth first. A state that was seen before, by its key, is not searched again. The
// world of a state is made again from its steps, because worlds cannot be copied.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/orders/story.hpp"

namespace signalbox::orders {

struct Limits {
  std::size_t depth = 0;   ///< The most steps of a trace; 0: no limit.
  std::size_t states = 0;  ///< The search ends when it has this many states; 0: no limit.
};

struct Report {
  std::size_t depth = 0;        ///< All states that so many steps can reach were checked.
  std::size_t states = 0;       ///< Different states that were checked.
  std::size_t transitions = 0;  ///< Steps out of the checked states.
  std::size_t rests = 0;        ///< States in which nothing more can happen.
  /// No state was left out: every order ends in a state at rest that was checked.
  bool is_complete = false;
  std::string broken;              ///< The rule that is broken, or what was thrown; empty: none.
  std::vector<std::string> trace;  ///< The steps that lead to it; no trace is shorter.
};

Report explore(const Story& story, const Limits& limits);

/// The report as lines, without time. The first line ends with ", complete" if the search was.
std::string to_text(const Report& report);

}  // namespace signalbox::orders
