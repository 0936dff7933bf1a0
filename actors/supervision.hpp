// SPDX-License-Identifier: Apache-2.0
//
// supervision — how long to wait before a dead actor is started anew, and which configuration it
// may be given: never one that is to blame for its death.
//
//   UpdateChild ─▶ sent() ─▶ (child) ─▶ applied() … died() ─▶ replay()
//   death ─▶ RestartDelay::next(now) ─▶ RestartDue after 0.1, 0.2, 0.4 … 10 s, until a quiet minute

#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "messages/back_off.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::actors {

/// Doubles with each death, and is forgotten after a minute without one: whatever else an actor
/// did well, one that dies often is started rarely.
class RestartDelay {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(100);
  static constexpr Duration kLongest = std::chrono::seconds(10);
  static constexpr Duration kQuiet = std::chrono::minutes(1);
  /// Of what opens an ADS stream at once: its predecessor may just have done so, and no server
  /// sees more than one new stream a second.
  static constexpr Duration kFirstOfStream = std::chrono::seconds(2);

  explicit RestartDelay(Duration first = kFirst) : first_(first), next_(first) {}

  /// How long to wait, as the actor has died now.
  Duration next(Instant now) {
    if (last_death_ && now - *last_death_ >= kQuiet) next_ = first_;
    last_death_ = now;
    const Duration delay = next_;
    next_ = longer_wait(next_, 2, kLongest);
    return delay;
  }

 private:
  Duration first_;
  Duration next_;
  std::optional<Instant> last_death_;
};

/// The configurations of one child, as far as its restart needs them.
class ReplayLog {
 public:
  /// More are not remembered of a child that reports none of them; the oldest goes.
  static constexpr std::size_t kMostUnproven = 16;

  void sent(const ConfigUpdated& update) {
    if (unproven_.size() == kMostUnproven) unproven_.pop_front();
    unproven_.push_back(update);
  }

  /// Answers are cumulative, and may come after newer configurations were sent.
  void applied(Generation generation) {
    while (!unproven_.empty() && unproven_.front().generation <= generation) {
      good_ = std::move(unproven_.front());
      unproven_.pop_front();
    }
  }

  /// The child died: the oldest that it had not applied by then is poison to it. Those behind
  /// that it may never have met.
  void died() {
    if (!unproven_.empty()) unproven_.pop_front();
  }

  /// The newest that is not blamed, else the last that was applied; null: wait for the next.
  const ConfigUpdated* to_replay() const {
    if (!unproven_.empty()) return &unproven_.back();
    return good_ ? &*good_ : nullptr;
  }

  /// The child is started with this. What is older it never sees, and so is never blamed.
  /// Precondition: to_replay().
  const ConfigUpdated& replay() {
    while (unproven_.size() > 1)
      unproven_.pop_front();
    return *to_replay();
  }

 private:
  std::deque<ConfigUpdated> unproven_;  ///< Sent, not applied; in order.
  std::optional<ConfigUpdated> good_;
};

}  // namespace signalbox::actors
