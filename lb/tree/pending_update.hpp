// SPDX-License-Identifier: Apache-2.0
//
// PendingUpdate — a configuration that the children of a composite have not all answered yet.
//
//   ConfigUpdated ─▶ begin ─▶ … ─▶ ended: all have answered, or had their time ─▶ the choice
//      or begin_in_turn ─▶ waits while one is pending ─▶ begin_waiting
//
// For composites that choose by what their children say: until all say it of the same configuration
// the choice stays what it was (gRFC A56). It is waited for one failover window at most. A
// composite either lets the newest configuration count at once (begin), or lets each one that it
// began end before the next one begins (begin_in_turn).

#pragma once

#include <optional>

#include "lb/child_set.hpp"

namespace signalbox::lb {

class PendingUpdate {
 public:
  /// The children are being sent a configuration. One that was pending is over: the newest counts,
  /// but the time runs on.
  void begin() { is_pending_ = true; }

  /// Whether `update` begins now, as none is pending. Else it waits, in the place of one that waits
  /// already.
  bool begin_in_turn(const ConfigUpdated& update);

  /// To be asked when one has ended: the configuration that waits begins; nullopt: none waits.
  std::optional<ConfigUpdated> begin_waiting();

  bool is_pending() const { return is_pending_; }

  /// To be asked at the end of every step: whether it ended with this one. Runs the timer.
  bool ended(const ChildSet& children, Duration patience, LbEffects& effects);

  /// Whether `fired` says that the time is over. Then no child is waited for (ChildSet::excuse).
  bool ran_out(const TimerFired& fired);

 private:
  bool is_pending_ = false;
  std::optional<ConfigUpdated> waiting_;  ///< Only while pending.
  std::optional<TimerId> timer_;          ///< Runs; only while pending.
  std::uint64_t timers_ = 0;              ///< Generation of the one started last.
};

}  // namespace signalbox::lb
