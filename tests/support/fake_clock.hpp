// SPDX-License-Identifier: Apache-2.0
//
// FakeClock — the virtual time of the world outside of the actors, and what happens there later.
//
//   fakes ─▶ after(delay, action) ─▶ [FakeClock] ─▶ run_next() by whoever owns the time
//
// Actions of one instant run in the order in which they were ordered. With a grid, instants are
// few, so that much happens in the same one: that is where orders differ.

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

  /// Late by less than the grid.
  void after(Duration delay, std::function<void()> action) {
    const Duration beyond = (now_ + delay).time_since_epoch() % grid_;
    const Duration rest = beyond == Duration::zero() ? beyond : grid_ - beyond;
    after_exactly(delay + rest, std::move(action));
  }

  void after_exactly(Duration delay, std::function<void()> action) {
    actions_.emplace(now_ + delay, std::move(action));
  }

  /// More than 0.
  void set_grid(Duration grid) { grid_ = grid; }

  /// When the next action is due.
  std::optional<Instant> next() const {
    if (actions_.empty()) return std::nullopt;
    return actions_.begin()->first;
  }

  /// Precondition: there is one. Time never goes back.
  void run_next() {
    auto node = actions_.extract(actions_.begin());
    advance_to(node.key());
    node.mapped()();
  }

  void advance_to(Instant now) {
    if (now > now_) now_ = now;
  }

  /// Forgets what was ordered.
  void clear() { actions_.clear(); }

 private:
  Instant now_;
  Duration grid_{1};
  std::multimap<Instant, std::function<void()>> actions_;
};

}  // namespace signalbox::testing
