// SPDX-License-Identifier: Apache-2.0
//
// CallRecord — counts one call of a drop-in channel, once, as it ended for the application.
//
//   call_interceptor: made ─▶ begun() ─▶ ended(code) ─▶ CallerStats
//
// The call's time begins when the stub makes the call, and includes all waiting and all attempts. A
// call is not counted if its first batch never reached the call interceptor: it was not started, or
// an interceptor of the application answered it. Another call that got no status before its context
// ended was given up, and counts as CANCELLED.

#pragma once

#include <chrono>
#include <utility>

#include "messages/counting/caller_stats.hpp"
#include "messages/ids.hpp"

namespace signalbox::channel {

class CallRecord {
 public:
  using Clock = std::chrono::steady_clock;

  /// `stats` must outlive this object; null: the call is not counted. `is_timed`: made() is needed
  /// even with null `stats`.
  CallRecord(const CallerStats* stats, bool is_timed)
      : stats_(stats), made_(stats != nullptr || is_timed ? Clock::now() : Instant()) {}

  ~CallRecord() {
    constexpr int kCancelled = 1;
    if (has_begun_ && stats_ != nullptr) ended(kCancelled, Clock::now());
  }

  CallRecord(const CallRecord&) = delete;
  CallRecord& operator=(const CallRecord&) = delete;

  /// When the stub made the call; unset if nothing needs the time.
  Instant made() const { return made_; }

  /// Whether the call is to be counted and has not been counted yet.
  bool is_open() const { return stats_ != nullptr; }

  /// The application has started the call.
  void begun() { has_begun_ = true; }

  /// Counts the call: the application gets the status `code` at `now`. Further calls of this
  /// function do nothing.
  void ended(int code, Instant now) {
    if (stats_ == nullptr) return;
    std::exchange(stats_, nullptr)->count(code, now - made_);
  }

 private:
  const CallerStats* stats_;  ///< Null: the call has been counted, or is not to be counted.
  const Instant made_;
  bool has_begun_ = false;
};

}  // namespace signalbox::channel
