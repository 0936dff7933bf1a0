// SPDX-License-Identifier: Apache-2.0
//
// AppliedConfigs — the last configurations of a target, and when picks first saw them.
//
//   channel actor ─▶ add() ─▶ [AppliedConfigs] ─▶ newest_last() ─▶ Runtime::dump
//
// The ChannelPort holds the AppliedConfigs, so a restarted channel actor adds to the same list.
// Thread-safe.

#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "messages/resource_dump.hpp"

namespace signalbox::actors {

class AppliedConfigs {
 public:
  /// The most configurations that are kept. The oldest one is dropped first.
  static constexpr std::size_t kMost = 16;

  void add(AppliedConfig applied) {
    const std::lock_guard lock(mutex_);
    if (configs_.size() == kMost) configs_.pop_front();
    configs_.push_back(std::move(applied));
  }

  std::vector<AppliedConfig> newest_last() const {
    const std::lock_guard lock(mutex_);
    return {configs_.begin(), configs_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::deque<AppliedConfig> configs_;
};

}  // namespace signalbox::actors
