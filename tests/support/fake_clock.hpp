// SPDX-License-Identifier: Apache-2.0
//
// FakeClock — virtual time for the fakes, and the actions that are due at later instants of it.
//
//   fakes ─▶ after(delay, action) ─▶ [FakeClock] ─▶ run_next() by the owner of the time
//
// Actions of one instant run in the order of their after() calls. A coarse grid makes many actions
// due at the same instant, so that tests can vary the order of those actions.

#pragma once

#include <functional>
#include <utility>

#include "actors/record/virtual_time.hpp"

namespace signalbox::testing {

class FakeClock : public actors::VirtualTime {
 public:
  using VirtualTime::VirtualTime;

  /// Rounds the due instant up to the grid: the action is late by less than one grid step.
  void after(Duration delay, std::function<void()> action) {
    const Duration beyond = (now() + delay).time_since_epoch() % grid_;
    const Duration rest = beyond == Duration::zero() ? beyond : grid_ - beyond;
    after_exactly(delay + rest, std::move(action));
  }

  void after_exactly(Duration delay, std::function<void()> action) {
    at(now() + delay, std::move(action));
  }

  /// Precondition: `grid` > 0.
  void set_grid(Duration grid) { grid_ = grid; }

 private:
  Duration grid_{1};
};

}  // namespace signalbox::testing
