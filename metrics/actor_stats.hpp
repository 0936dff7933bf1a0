// SPDX-License-Identifier: Apache-2.0
//
// ActorStats — the work of one kind of actor: messages, the time that they take, and how many wait.
//
//   actors/workload ─▶ [ActorStats] ─▶ instruments ─▶ exporter

#pragma once

#include <atomic>
#include <cstdint>

#include "messages/counting/striped.hpp"
#include "messages/counting/striped_histogram.hpp"

namespace signalbox::metrics {

class ActorStats {
 public:
  /// `bounds`: the upper bounds of the buckets of durations().
  explicit ActorStats(DurationBounds bounds = kLatencyBounds) : durations_(bounds) {}

  void count_message() const { messages_.add(0, 1); }

  void record_handled(Duration duration) const { durations_.record(duration); }

  /// Records that an actor of this kind has `messages` messages in its mailbox now.
  void record_waiting(std::int64_t messages) const {
    std::int64_t longest = longest_.load(std::memory_order_relaxed);
    while (messages > longest &&
           !longest_.compare_exchange_weak(longest, messages, std::memory_order_relaxed)) {
    }
  }

  std::int64_t messages() const { return messages_.sum(0); }

  const StripedHistogram& durations() const { return durations_; }

  /// The most messages that record_waiting() has seen since the last call of take_longest().
  std::int64_t take_longest() const { return longest_.exchange(0, std::memory_order_relaxed); }

 private:
  StripedCounters<1> messages_;
  const StripedHistogram durations_;
  mutable std::atomic<std::int64_t> longest_{0};
};

}  // namespace signalbox::metrics
