// SPDX-License-Identifier: Apache-2.0
//
// VirtualTime — a time that moves from one due action to the next, never by itself.
//
//   seams of a replay ─▶ at(instant, action) ─▶ [VirtualTime] ─▶ run_next(), by its owner
//
// Actions of one instant run in the order of their at() calls. One thread uses it.

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "messages/ids.hpp"

namespace signalbox::actors {

class VirtualTime {
 public:
  explicit VirtualTime(Instant start) : now_(start) {}

  ~VirtualTime() { clear(); }

  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  Instant now() const { return now_; }

  /// Runs the action at the instant, or as soon as possible if the instant has passed.
  void at(Instant due, std::function<void()> action) {
    actions_.emplace(due < now_ ? now_ : due, std::move(action));
  }

  std::optional<Instant> next() const {
    return actions_.empty() ? std::nullopt : std::optional(actions_.begin()->first);
  }

  /// Moves the time to the next action, and runs it. Precondition: an action is pending.
  void run_next() {
    auto node = actions_.extract(actions_.begin());
    advance_to(node.key());
    node.mapped()();
  }

  void advance_to(Instant now) {
    if (now > now_) now_ = now;
  }

  /// Drops all actions, and those that their destruction adds.
  void clear() {
    while (!actions_.empty())
      std::exchange(actions_, {});
  }

 private:
  Instant now_;
  std::multimap<Instant, std::function<void()>> actions_;
};

}  // namespace signalbox::actors
