// SPDX-License-Identifier: Apache-2.0
//
// Alarms — timers by key: a key has at most one alarm, and drop(key) removes it.
//
//   set(key, due, what) ─▶ [Alarms] ─▶ next(): time of the next alarm ─▶ take_due(now)
//   drop(key)           ─▶
//
// CAF cannot cancel a delayed message. The message keeps its receiver's memory until the message is
// due. Without Alarms, thousands of subchannels that end during their back-off would stay in memory
// until the back-off is over, by default after up to two minutes, and with jitter 20 % more.
//
// Alarms is a plain value: its owner passes the time to it.

#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "messages/ids.hpp"

namespace signalbox::actors {

template <typename Key, typename What>
class Alarms {
 public:
  using Due = std::pair<Key, What>;

  /// Sets the alarm of `key`; take_due() returns `what` with the key. An earlier alarm of the key
  /// is dropped.
  void set(const Key& key, Instant due, What what) {
    drop(key);
    places_.emplace(key, by_time_.emplace(due, Due(key, std::move(what))));
  }

  void drop(const Key& key) {
    const auto place = places_.find(key);
    if (place == places_.end()) return;
    by_time_.erase(place->second);
    places_.erase(place);
  }

  /// The time of the earliest alarm; nullopt: there is no alarm.
  std::optional<Instant> next() const {
    if (by_time_.empty()) return std::nullopt;
    return by_time_.begin()->first;
  }

  /// Removes and returns the alarms that are due, the earliest first.
  std::vector<Due> take_due(Instant now) {
    std::vector<Due> due;
    while (!by_time_.empty() && by_time_.begin()->first <= now) {
      due.push_back(std::move(by_time_.begin()->second));
      by_time_.erase(by_time_.begin());
      places_.erase(due.back().first);
    }
    return due;
  }

 private:
  using ByTime = std::multimap<Instant, Due>;

  ByTime by_time_;
  std::map<Key, typename ByTime::iterator> places_;
};

}  // namespace signalbox::actors
