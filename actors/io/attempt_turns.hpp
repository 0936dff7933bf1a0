// SPDX-License-Identifier: Apache-2.0
//
// AttemptTurns — decides which attempts to connect may begin, when many are wanted at once.
//
//   want(attempt) ─▶ [AttemptTurns] ─▶ begin(now): the attempts that begin now
//   withdraw, done ─▶
//
// An attempt costs CPU time and memory while it is being made. Ten thousand attempts at once would
// use up both, and each attempt would exceed its time limit. An attempt to an address that does not
// answer only waits, and uses no CPU time. So after `slow_after` such an attempt no longer delays
// the others.
//
// Invariants
//   T1  At most `at_once` attempts that began less than `slow_after` ago are being made.
//   T2  Waiting attempts begin as soon as T1 allows, alternately the oldest and the newest. So no
//       attempt waits forever, and a few new attempts of a failover do not wait behind attempts to
//       ten thousand addresses that do not answer.
//
// AttemptTurns is a plain value: its owner provides threads and time.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "messages/ids.hpp"

namespace signalbox::actors {

struct AttemptLimits {
  std::size_t at_once = 64;
  Duration slow_after = std::chrono::milliseconds(100);
};

/// `Key` names an attempt; its type is ordered and cheap to copy.
template <typename Key>
class AttemptTurns {
 public:
  explicit AttemptTurns(AttemptLimits limits = {}) : limits_(limits) {}

  /// Makes the attempt `key` wait until begin() returns it. Precondition: `key` is not waiting
  /// already.
  void want(Key key) {
    places_.emplace(key, ++wanted_);
    waiting_.emplace(wanted_, std::move(key));
  }

  /// Removes a waiting attempt; does nothing if `key` is not waiting. This must be fast, because a
  /// hundred thousand attempts may be withdrawn at once.
  void withdraw(const Key& key) {
    const auto place = places_.find(key);
    if (place == places_.end()) return;
    waiting_.erase(place->second);
    places_.erase(place);
  }

  /// Records the end of an attempt that had begun.
  void done(const Key& key) { making_.erase(key); }

  /// Returns the attempts that begin at `now`.
  std::vector<Key> begin(Instant now) {
    while (!begun_.empty() && is_over(begun_.front(), now)) {
      making_.erase(begun_.front().key);
      begun_.pop_front();
    }
    std::vector<Key> turns;
    while (making_.size() < limits_.at_once && !waiting_.empty()) {
      turns.push_back(take());
      making_.insert(turns.back());
      begun_.push_back({now, turns.back()});
    }
    return turns;
  }

  /// The time at which begin() must be called again at the latest. nullopt: no call is needed
  /// before the next want() or done().
  std::optional<Instant> next_turn() const {
    if (waiting_.empty() || begun_.empty()) return std::nullopt;
    return begun_.front().at + limits_.slow_after;
  }

 private:
  struct Begun {
    Instant at;
    Key key;
  };

  Key take() {
    const bool newest = std::exchange(newest_is_next_, !newest_is_next_);
    const auto which = newest ? std::prev(waiting_.end()) : waiting_.begin();
    Key key = std::move(which->second);
    waiting_.erase(which);
    places_.erase(key);
    return key;
  }

  // Whether the entry may leave begun_: its attempt is done, or began at least `slow_after` ago, so
  // that T1 no longer counts the attempt.
  bool is_over(const Begun& begun, Instant now) const {
    return !making_.contains(begun.key) || begun.at + limits_.slow_after <= now;
  }

  AttemptLimits limits_;
  std::map<std::uint64_t, Key> waiting_;  ///< The waiting attempts, in the order of want().
  std::map<Key, std::uint64_t> places_;   ///< Each waiting attempt's key in waiting_.
  std::uint64_t wanted_ = 0;
  bool newest_is_next_ = false;
  /// The attempts that have begun, the oldest first; some of them are done.
  std::deque<Begun> begun_;
  std::set<Key> making_;  ///< The attempts that are being made, and that T1 counts.
};

}  // namespace signalbox::actors
