// SPDX-License-Identifier: Apache-2.0
//
// PendingUpdate — waits until all children of a composite have answered a configuration.
//
//   ConfigUpdated ─▶ begin ─▶ … ─▶ ended: all have answered, or time is up ─▶ the choice
//      or begin_in_turn ─▶ waits while one is pending ─▶ begin_waiting
//
// For composites that choose among children by the children's reports. A configuration is pending
// until all children have reported on it (gRFC A56), or one failover_timeout is over. Meanwhile the
// choice stays. If another configuration comes meanwhile, it either replaces the pending one at
// once (begin), or waits until the pending one has ended (begin_in_turn).

#pragma once

#include <optional>

#include "lb/tree/child_set.hpp"

namespace signalbox::lb {

class PendingUpdate {
 public:
  /// Makes a configuration pending. If one is pending already, it is replaced, but its timer runs
  /// on.
  void begin() { is_pending_ = true; }

  /// Makes `update` pending and returns true, if no configuration is pending. Otherwise stores it
  /// for begin_waiting(), in place of any stored before, and returns false.
  bool begin_in_turn(const ConfigUpdated& update);

  /// Makes the stored configuration pending, and returns it; nullopt: none is stored. Call it after
  /// ended() has returned true.
  std::optional<ConfigUpdated> begin_waiting();

  bool is_pending() const { return is_pending_; }

  /// Whether the pending configuration has just ended: all children have answered, or are excused.
  /// Starts and cancels the timer (`patience`). Call it at the end of every step.
  bool ended(const ChildSet& children, Duration patience, LbEffects& effects);

  /// Whether `fired` is the timer of the pending configuration. If so, the caller must excuse all
  /// children (ChildSet::excuse), so that ended() returns true.
  bool ran_out(const TimerFired& fired);

 private:
  bool is_pending_ = false;
  /// The configuration stored by begin_in_turn(); only while another one is pending.
  std::optional<ConfigUpdated> waiting_;
  std::optional<TimerId> timer_;  ///< The running timer; only while pending.
  std::uint64_t timers_ = 0;      ///< Generation of the timer started last.
};

}  // namespace signalbox::lb
