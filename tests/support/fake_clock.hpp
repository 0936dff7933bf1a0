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
#include <map>
#include <optional>
#include <utility>

#include "messages/ids.hpp"

namespace signalbox::testing {

class FakeClock {
 public:
  explicit FakeClock(Instant start) : now_(start) {}

  Instant now() const { return now_; }

  /// Rounds the due instant up to the grid: the action is late by less than one grid step.
  void after(Duration delay, std::function<void()> action) {
    const Duration beyond = (now_ + delay).time_since_epoch() % grid_;
    const Duration rest = beyond == Duration::zero() ? beyond : grid_ - beyond;
    after_exactly(delay + rest, std::move(action));
  }

  void after_exactly(Duration delay, std::function<void()> action) {
    actions_.emplace(now_ + delay, std::move(action));
  }

  /// Precondition: `grid` > 0.
  void set_grid(Duration grid) { grid_ = grid; }

  /// When the next action is due.
  std::optional<Instant> next() const {
    if (actions_.empty()) return std::nullopt;
    return actions_.begin()->first;
  }

  /// Moves the time to the due instant of the next action, unless it has passed, and runs the
  /// action. Precondition: an action is pending.
  void run_next() {
    auto node = actions_.extract(actions_.begin());
    advance_to(node.key());
    node.mapped()();
  }

  void advance_to(Instant now) {
    if (now > now_) now_ = now;
  }

  /// Drops all pending actions.
  void clear() { actions_.clear(); }

 private:
  Instant now_;
  Duration grid_{1};
  std::multimap<Instant, std::function<void()>> actions_;
};

}  // namespace signalbox::testing
