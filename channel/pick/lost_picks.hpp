// SPDX-License-Identifier: Apache-2.0
//
// LostPicks — the endpoints that one snapshot gave to a call, and that have lost their connections
// since. Other endpoints of the snapshot may still take the call.
//
//   channel's calls: call_binder ─▶ [LostPicks] ─▶ queued_call picks again
//   Pick API: router, waiting_pick ─▶ [pass_over_lost] ─▶ picks again
//
// A connection learns of its end before the policies do, so for some time the newest snapshot has
// connections that take no calls. A LostPicks belongs to one call, and to one thread at a time.

#pragma once

#include <cstddef>

#include "lb/pick/router.hpp"

namespace signalbox::channel {

class LostPicks {
 public:
  /// The most addresses that picks from one snapshot avoid. A call with more of them waits for the
  /// next snapshot: probably all endpoints are lost.
  static constexpr std::size_t kMost = 3;

  /// Gives up the endpoint of `pick` (Pick::put_off), and notes its address. Precondition: the pick
  /// is complete.
  void put_off(lb::Pick& pick);

  /// Another pick from the same snapshot may find another endpoint. False: there are more than
  /// kMost addresses, or the last pick chose one that it should have avoided.
  bool may_go_elsewhere() const { return may_go_elsewhere_; }

  /// The addresses that the next pick avoids: the lost ones, and those in `tried` unless it is
  /// null.
  TriedAddresses avoided(const TriedAddresses* tried) const;

 private:
  TriedAddresses addresses_;
  bool may_go_elsewhere_ = true;
};

/// Whether the pick is complete and its connection takes no calls any more.
inline bool is_lost(const lb::Pick& pick) {
  return pick.outcome() == PickOutcome::kComplete && !pick.connection()->takes_calls();
}

/// Does the work of pass_over_lost() for a pick that is lost.
void pick_elsewhere(const lb::Router& router, lb::Pick& pick, const lb::CallArgs& call);

/// If the pick is lost, picks again without the lost endpoints. Afterwards the pick is not lost, or
/// it is put off: then the call waits for the next snapshot. Reads the picked connection.
inline void pass_over_lost(const lb::Router& router, lb::Pick& pick, const lb::CallArgs& call) {
  if (is_lost(pick)) [[unlikely]]
    pick_elsewhere(router, pick, call);
}

}  // namespace signalbox::channel
