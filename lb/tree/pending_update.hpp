// SPDX-License-Identifier: Apache-2.0
//
// PendingUpdate — a configuration that the children of a composite have not all answered yet.
//
//   ConfigUpdated ─▶ begin ─▶ … ─▶ ended: all have answered, or time is up ─▶ the choice
//      or begin_in_turn ─▶ waits while one is pending ─▶ begin_waiting
//
// Used by composites that choose by the reports of their children. The choice stays as it was until
// all children have reported on the same configuration (gRFC A56), or one failover_timeout is over.
// When another configuration comes meanwhile, it either replaces the pending one at once (begin),
// or waits for its end (begin_in_turn).

#pragma once

#include <optional>

#include "lb/child_set.hpp"

namespace signalbox::lb {

class PendingUpdate {
 public:
  /// The children are being sent a configuration. It replaces a pending configuration, but the
  /// timer runs on.
  void begin() { is_pending_ = true; }

  /// Whether `update` begins now: true if no configuration is pending. Else `update` waits, and
  /// replaces a configuration that waits already.
  bool begin_in_turn(const ConfigUpdated& update);

  /// Begins the configuration that waits, and returns it; nullopt: none waits. Call it after a
  /// configuration has ended.
  std::optional<ConfigUpdated> begin_waiting();

  bool is_pending() const { return is_pending_; }

  /// Whether the pending configuration ended in this step. Starts and cancels the timer. Call it
  /// at the end of every step.
  bool ended(const ChildSet& children, Duration patience, LbEffects& effects);

  /// Whether `fired` is this timer. If so, no child is waited for any more (ChildSet::excuse).
  bool ran_out(const TimerFired& fired);

 private:
  bool is_pending_ = false;
  /// The configuration that waits; only while another one is pending.
  std::optional<ConfigUpdated> waiting_;
  std::optional<TimerId> timer_;  ///< The running timer; only while pending.
  std::uint64_t timers_ = 0;      ///< Generation of the timer started last.
};

}  // namespace signalbox::lb
