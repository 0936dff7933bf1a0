// SPDX-License-Identifier: Apache-2.0
//
// choose_priority — which priority carries the calls (gRFC A56), and which priorities below it stay
// connected as standbys (signalbox's own addition).
//
//   children as they are ─▶ [choose_priority] ─▶ the one to use, and what becomes of those below
//
// Pure, and idempotent: if the caller starts the chosen child, which opens its failover window, and
// asks again, the answer is the same.
//
// Standbys are the next `standbys` priorities below a chosen priority that is usable. They stay
// connected, but get no calls. If the chosen priority loses its connections, a READY standby takes
// the calls, while the lost priority reconnects within its failover window. Without standbys, calls
// would wait in that window, as in A56. A priority that connects for the first time has lost
// nothing, and keeps its calls; ring_hash and pick_first may connect because a call asked for it.

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
  bool has_been_ready = false;
};

struct PriorityChoice {
  std::size_t index = 0;
  /// How many priorities, from the highest, must be started: those up to the chosen one, or all.
  std::size_t considered = 0;
  /// The chosen priority is usable, so the priorities below its standbys are not needed, and can
  /// be deactivated.
  bool deactivate_lower = false;
  /// How many priorities after the `considered` ones must be started as standbys.
  std::size_t standbys = 0;
};

inline bool is_usable(ConnectivityState state) {
  return state == ConnectivityState::kReady || state == ConnectivityState::kIdle;
}

/// Chooses the first priority that is READY, IDLE, within its failover window or not yet started;
/// else the first CONNECTING one; else the last. Exception: if the priority found first has lost
/// its connections and is within its window, a READY one of the next `standbys` is chosen instead.
/// Precondition: `children` is not empty.
PriorityChoice choose_priority(std::span<const PriorityChild> children, std::size_t standbys = 0);

}  // namespace signalbox::lb
