// SPDX-License-Identifier: Apache-2.0
//
// TracedCall — tells a CallTrace what happens to its call, in the order that call_observer.hpp
// promises, and keeps the program's exceptions out of the call.
//
//   attempts, queued_call, pick_until, pick_async ─▶ [TracedCall] ─▶ the program's CallTrace
//
// The callers report only what they see. TracedCall adds the events that are missing: it ends a
// delay that is open when the attempt is sent or ends, and an attempt that is open when the call
// ends.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "messages/counting/caller_stats.hpp"
#include "messages/ids.hpp"
#include "signalbox/call_observer.hpp"

namespace grpc {
class ClientContext;
}  // namespace grpc

namespace signalbox::channel {

/// The observer of one target's calls.
struct CallTracing {
  std::shared_ptr<CallObserver> observer;  ///< Not null.
  std::string target;
  /// Tells the operator that the observer has thrown. Thread-safe; may be called after the
  /// runtime's end.
  std::function<void(const std::string& text)> complain;
};

class TracedCall {
 public:
  using Tracing = std::shared_ptr<const CallTracing>;

  /// A call begins. Returns null if there is no observer, or if the observer throws or does not
  /// want to see this call.
  [[gnu::hot]] static std::unique_ptr<TracedCall> begin(const Tracing& tracing,
                                                        absl::string_view method,
                                                        const grpc::ClientContext* context,
                                                        Instant at) {
    return tracing == nullptr ? nullptr : begin_traced(tracing, method, context, at);
  }

  /// A call that was started and has not ended counts as given up by the application: tells the
  /// observer that the call ends CANCELLED.
  ~TracedCall();
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

  /// The application has started the call.
  void started();

  /// The call waits. If it waited already, another `type` ends that delay and begins a new one;
  /// another `reason` alone changes the reason of the open delay. `in_attempt`: the wait belongs to
  /// an attempt, which begins now unless it has begun.
  void waits(DelayType type, absl::string_view reason, bool in_attempt, Instant at);

  /// The call waits no longer.
  void waits_no_longer(Instant at);

  /// An attempt begins. Does nothing if waits() has begun the attempt already.
  void attempt_began(Instant at);

  /// The attempt sends its headers. Also begins the attempt, unless an earlier call has begun it.
  void attempt_sent(absl::string_view cluster,
                    absl::string_view endpoint,
                    AttemptHeaders& headers,
                    Instant at);

  /// The attempt has ended. The observer sees nothing if no attempt is open. With `retry_after`,
  /// another attempt follows after this time, and has `previous_attempts` attempts before it.
  void attempt_ended(int code,
                     absl::string_view message,
                     std::optional<Duration> retry_after,
                     std::uint32_t previous_attempts,
                     Instant at);

  /// The call has ended for the application. Only the first end counts.
  void call_ended(int code, absl::string_view message, Instant at);

 private:
  struct Delay {
    DelayType type;
    std::string reason;
  };

  TracedCall(Tracing tracing, std::unique_ptr<CallTrace> trace);

  static std::unique_ptr<TracedCall> begin_traced(const Tracing& tracing,
                                                  absl::string_view method,
                                                  const grpc::ClientContext* context,
                                                  Instant at);
  template <typename Event>
  void tell(Event event);
  void open_attempt(Instant at);
  void close_attempt(int code,
                     absl::string_view message,
                     std::optional<Duration> retry_after,
                     Instant at);
  void close_delay(Instant at);

  const Tracing tracing_;
  const std::unique_ptr<CallTrace> trace_;

  /// Guards the members below. It is held during an event, so that events come one after another
  /// even when an interceptor of the program continues batches out of their order.
  std::mutex mutex_;
  bool has_thrown_ = false;
  bool has_started_ = false;
  bool has_ended_ = false;
  bool in_attempt_ = false;
  std::optional<Delay> delay_;
  std::uint32_t previous_attempts_ = 0;
  bool is_transparent_retry_ = false;
};

}  // namespace signalbox::channel
