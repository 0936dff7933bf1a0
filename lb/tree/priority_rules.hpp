// SPDX-License-Identifier: Apache-2.0
//
// choose_priority — which priority carries the calls, and which are standbys: the decision of gRFC
// A56, and with standbys more than that.
//
//   children as they are ─▶ [choose_priority] ─▶ the one to use, and what becomes of those below
//
// Pure, and idempotent: acting on its answer (starting the chosen child, which then has its
// failover window) and asking again gives the same answer.
//
// Standbys are the next `standbys` priorities below a chosen one that is usable. They stay
// connected without calls. So when the chosen one loses its connections, calls need not wait: a
// READY standby takes them while the lost priority connects again within its failover window.
// Without standbys calls wait in that window, as in A56. A priority that connects because calls ask
// for it (ring_hash, pick_first: CONNECTING from IDLE) is not lost, and keeps its calls.

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
  bool lost = false;              ///< It became CONNECTING from READY.
};

struct PriorityChoice {
  std::size_t index = 0;
  /// The number of priorities, from the top, that were looked at. They must be active.
  std::size_t considered = 0;
  /// The chosen priority is usable, so the priorities below it are not needed now, except for the
  /// standbys.
  bool deactivate_lower = false;
  /// The number of priorities after the considered ones that must be active as standbys.
  std::size_t standbys = 0;
};

inline bool is_usable(ConnectivityState state) {
  return state == ConnectivityState::kReady || state == ConnectivityState::kIdle;
}

/// Chooses the first priority that is READY, IDLE, within its failover window or not yet started;
/// else the first CONNECTING priority; else the last. If the first one is lost and within its
/// window, a READY one among the next `standbys` is chosen instead. Precondition: there is at least
/// one priority.
PriorityChoice choose_priority(std::span<const PriorityChild> children, std::size_t standbys = 0);

}  // namespace signalbox::lb
