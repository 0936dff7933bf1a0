// SPDX-License-Identifier: Apache-2.0
//
// choose_priority — which priority carries the calls: the decision of gRFC A56, and nothing else.
//
//   children as they are ─▶ [choose_priority] ─▶ the one to use, and what becomes of those below
//
// Pure, and idempotent: acting on its answer (starting the chosen child, which then has its
// failover window) and asking again gives the same answer.

#pragma once

#include <cstddef>
#include <span>

#include "messages/connectivity.hpp"

namespace signalbox::lb {

/// The facts about one priority that the choice depends on.
struct PriorityChild {
  bool started = false;
  ConnectivityState state = ConnectivityState::kConnecting;
  bool failover_pending = false;  ///< The failover window is open.
};

struct PriorityChoice {
  std::size_t index = 0;
  /// The number of priorities, from the top, that were looked at. They must be active.
  std::size_t considered = 0;
  /// The chosen priority is usable, so the priorities below it are not needed now.
  bool deactivate_lower = false;
};

inline bool is_usable(ConnectivityState state) {
  return state == ConnectivityState::kReady || state == ConnectivityState::kIdle;
}

/// Chooses the first priority that is READY, IDLE, within its failover window or not yet started;
/// else the first CONNECTING priority; else the last. Precondition: there is at least one priority.
PriorityChoice choose_priority(std::span<const PriorityChild> children);

}  // namespace signalbox::lb
