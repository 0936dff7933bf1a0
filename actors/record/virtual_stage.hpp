// SPDX-License-Identifier: Apache-2.0
//
// VirtualStage — runs actors on the calling thread, in virtual time, always in the same order.
//
//   messages, in the order of their sending ─▶ [VirtualStage] ─▶ one actor at a time
//   timers of actors, actions of VirtualTime ─▶ time moves to the next that is due
//
// All messages are handled before time moves. At one instant actions run before timers.

#pragma once

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include "actors/record/virtual_time.hpp"

namespace signalbox::actors {

class VirtualStage {
 public:
  explicit VirtualStage(VirtualTime& time);
  ~VirtualStage();
  VirtualStage(const VirtualStage&) = delete;
  VirtualStage& operator=(const VirtualStage&) = delete;

  caf::actor_system& system() { return system_; }

  /// Handles all messages, then moves to the next instant at which something is due and runs all
  /// that is due then, with the messages that follow. False: nothing is due until `end`; time is
  /// `end` then.
  bool run_instant(Instant end);

  /// Handles the messages that wait, and those that follow from them. Time does not move.
  void run_messages();

 private:
  std::optional<Instant> next_due() const;
  void run_timers();

  VirtualTime& time_;
  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& coordinator_;
};

}  // namespace signalbox::actors
