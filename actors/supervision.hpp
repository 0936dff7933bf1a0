// SPDX-License-Identifier: Apache-2.0
//
// supervision — the delay before a dead actor is restarted, and the configuration for the restart:
// never a configuration that is blamed for a death.
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

/// The delay doubles with each death, up to kLongest. After a minute without a death it is the
/// first delay again. So an actor that dies often is restarted rarely.
class RestartDelay {
 public:
  static constexpr Duration kFirst = std::chrono::milliseconds(100);
  static constexpr Duration kLongest = std::chrono::seconds(10);
  static constexpr Duration kQuiet = std::chrono::minutes(1);
  /// The first delay of actors that open a stream to a control plane, or have one opened, as soon
  /// as they start. The dead actor may just have opened a stream, and a server must not see more
  /// than one new stream a second.
  static constexpr Duration kFirstOfStream = std::chrono::seconds(2);

  explicit RestartDelay(Duration first = kFirst) : first_(first), next_(first) {}

  /// Records a death at `now`. Returns the delay before the restart.
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

/// The configurations of one child that its restart may need.
class ReplayLog {
 public:
  /// The most unapplied configurations that are kept. The oldest one is dropped first.
  static constexpr std::size_t kMostUnproven = 16;

  void sent(const ConfigUpdated& update) {
    if (unproven_.size() == kMostUnproven) unproven_.pop_front();
    unproven_.push_back(update);
  }

  /// The child has applied `generation` and all earlier ones. This report may come after newer
  /// configurations were sent.
  void applied(Generation generation) {
    while (!unproven_.empty() && unproven_.front().generation <= generation) {
      good_ = std::move(unproven_.front());
      unproven_.pop_front();
    }
  }

  /// The child died: the oldest unapplied configuration is blamed and dropped. The child may never
  /// have seen the later ones.
  void died() {
    if (!unproven_.empty()) unproven_.pop_front();
  }

  /// The newest unapplied configuration that is not blamed for a death, else the last applied one.
  /// Null: there is neither, and the restart has to wait for the next configuration.
  const ConfigUpdated* to_replay() const {
    if (!unproven_.empty()) return &unproven_.back();
    return good_ ? &*good_ : nullptr;
  }

  /// Returns to_replay(), with which the child is started. Older configurations are dropped: the
  /// child never sees them, so they must not be blamed. Precondition: to_replay() is not null.
  const ConfigUpdated& replay() {
    while (unproven_.size() > 1)
      unproven_.pop_front();
    return *to_replay();
  }

 private:
  std::deque<ConfigUpdated> unproven_;  ///< Sent and not applied, in the order of sending.
  std::optional<ConfigUpdated> good_;
};

}  // namespace signalbox::actors
