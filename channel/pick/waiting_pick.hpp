// SPDX-License-Identifier: Apache-2.0
//
// WaitingPick — a pick of Router::pick_async() that waits for an endpoint, and the callback that
// gets the result.
//
//   Router::pick_async ─▶ [WaitingPick] ─ woken: repick ─▶ picked(Pick)
//
// Router::pick_until(), which blocks instead, shares the free functions of this file: whether a
// call waits, and until when.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "channel/pick/lost_picks.hpp"
#include "channel/pick/once_waiter.hpp"
#include "channel/pick/pick_wait.hpp"
#include "channel/pick/traced_call.hpp"
#include "lb/pick/router.hpp"
#include "signalbox/router.hpp"

namespace signalbox::channel {

/// Whether a call with this pick waits for the next publication, or for the end of its delay.
inline bool has_to_wait(const lb::Pick& pick, OnFail on_fail) {
  const bool failed = pick.outcome() == PickOutcome::kFail;
  return pick.outcome() == PickOutcome::kQueue || (failed && on_fail == OnFail::kWait);
}

/// The status code of a call that ends because its last pick gives it no endpoint.
inline int unserved_code(const lb::Pick& last) {
  const bool waited = last.outcome() == PickOutcome::kQueue;
  return static_cast<int>(waited ? absl::StatusCode::kDeadlineExceeded : last.status().code());
}

/// Tells the program's observer that a pick waits, and why.
inline void trace_wait(TracedCall& trace, const lb::Pick& pick, Instant at) {
  const DelayType type = delay_type(pick);
  trace.waits(type, delay_reason(pick, type, "a configuration"), /*in_attempt=*/false, at);
}

/// Shows the program's observer the status with which a waiting pick has ended.
inline void trace_end(TracedCall& trace, const lb::Pick& last, Instant at) {
  if (last.outcome() == PickOutcome::kComplete) return trace.call_ended(0, "", at);
  const bool waited = last.outcome() == PickOutcome::kQueue;
  trace.call_ended(unserved_code(last),
                   waited ? absl::string_view("no endpoint was ready in time")
                          : absl::string_view(last.status().message()),
                   at);
}

/// Counts a call that ends because its last pick gives it no endpoint: with the pick's status, or
/// because it waited too long. Does nothing for a complete pick, or with null `callers`.
inline void count_unserved(const lb::Pick& last, const CallerStats* callers) {
  if (callers == nullptr || last.outcome() == PickOutcome::kComplete) return;
  callers->count_call(unserved_code(last));
}

/// Whether a filter delays the call (A33). A delayed call waits for the end of its delay, not for a
/// publication.
inline bool is_delayed(const lb::Pick& pick) {
  return pick.delay() > Duration::zero();
}

/// Whether a waiting call should pick again.
inline bool may_repick(const lb::Router& router, const lb::Pick& pick) {
  return is_delayed(pick) ? std::chrono::steady_clock::now() >= pick.due()
                          : router.sequence() != pick.sequence();
}

/// Picks once more, after the runtime has ended: the last snapshot fails the call. A call that a
/// filter delays does not wait for the end of its delay.
inline void repick_last(const lb::Router& router, lb::Pick& pick, const lb::CallArgs& call) {
  pick.end_delay();
  router.repick(pick, call);
}

/// Picks again, unless the call is still delayed, and passes over lost endpoints.
inline void repick(const lb::Router& router, lb::Pick& pick, const lb::CallArgs& call) {
  if (is_delayed(pick)) {
    if (std::chrono::steady_clock::now() < pick.due()) return;
    pick.end_delay();
  }
  router.repick(pick, call);
  pass_over_lost(router, pick, call);
  if (is_delayed(pick)) pick.begin_delay(std::chrono::steady_clock::now());
}

/// The first pick of a call. It does not look at the picked connection, which is often not in the
/// CPU's cache, so the connection may be lost.
inline lb::Pick pick(const lb::Router& router, const lb::CallArgs& call) {
  lb::Pick pick = router.pick(call);
  if (is_delayed(pick)) pick.begin_delay(std::chrono::steady_clock::now());
  return pick;
}

/// The caller's deadline, or the end of the route's timeout (A31-24) if the timeout ends sooner.
inline Instant limited(Instant deadline, Instant begun, const lb::Pick& pick) {
  const bool is_sooner = pick.timeout() && deadline > begun && *pick.timeout() < deadline - begun;
  return is_sooner ? begun + *pick.timeout() : deadline;
}

class WaitingPick : public OnceWaiter {
 public:
  using Picked = std::function<void(lb::Pick)>;

  /// `pick` is the call's first pick. `callers` counts the call's wait and, if the call ends
  /// without an endpoint, its end; null: neither is counted.
  WaitingPick(std::shared_ptr<WaitList> list,
              lb::Router router,
              std::shared_ptr<const CallerStats> callers,
              const lb::CallArgs& call,
              OnFail on_fail,
              lb::Pick pick,
              Picked picked)
      : OnceWaiter(std::move(list)),
        router_(std::move(router)),
        callers_(std::move(callers)),
        path_(call.path),
        call_{path_, call.headers, call.seed, call.authority, call.tried},
        on_fail_(on_fail),
        pick_(std::move(pick)),
        picked_(std::move(picked)) {}

  /// Sets the object that shows the wait to the program's observer; null: nothing is shown. Call it
  /// before begin().
  void trace(std::unique_ptr<TracedCall> trace) { trace_ = std::move(trace); }

  void begin() {
    record_wait();
    limit(pick_);
    wait();
  }

 private:
  bool is_over() override {
    // The runtime stores its last snapshot, and then closes the list. So the list is read before
    // the pick: if it is closed, the pick reads the last snapshot.
    const bool is_closed = list().is_closed();
    if (is_closed) {
      repick_last(router_, pick_, call_);
    } else if (may_repick(router_, pick_)) {
      const bool was_routed = pick_.cluster() != nullptr;
      repick(router_, pick_, call_);
      const bool is_timed = pick_.timeout() || is_delayed(pick_);
      if (!was_routed && is_timed && has_to_wait(pick_, on_fail_)) limit(pick_);
    }
    const bool is_over = is_closed || !has_to_wait(pick_, on_fail_);
    if (!is_over) record_wait();
    return is_over;
  }

  void call() override {
    const Instant now = std::chrono::steady_clock::now();
    wait_.ended(now, callers_.get());
    if (trace_ != nullptr) trace_end(*trace_, pick_, now);
    count_unserved(pick_, callers_.get());
    picked_(std::move(pick_));
  }

  void record_wait() {
    const Instant now = std::chrono::steady_clock::now();
    wait_.goes_on(delay_type(pick_), now, callers_.get());
    if (trace_ != nullptr) trace_wait(*trace_, pick_, now);
  }

  /// Sets the timers that call end() when `pick` may wait no longer, and wake() when the delay of
  /// `pick` is over. limit() is called once at the beginning. It is called once more if the call
  /// gets its route while it waits, and with the route a timeout or a delay.
  virtual void limit(const lb::Pick& pick) = 0;

  const lb::Router router_;
  const std::shared_ptr<const CallerStats> callers_;
  const std::string path_;
  const lb::CallArgs call_;
  const OnFail on_fail_;
  lb::Pick pick_;
  PickWait wait_;
  std::unique_ptr<TracedCall> trace_;
  const Picked picked_;
};

}  // namespace signalbox::channel
