// SPDX-License-Identifier: Apache-2.0
#include "channel/pick/traced_call.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace signalbox::channel {
namespace {

constexpr int kCancelled = 1;

// Runs the program's code. If the code throws, logs the exception and returns false.
template <typename Code>
bool guarded(const CallTracing& tracing, Code code) {
  std::string what = "an exception that is no std::exception";
  try {
    code();
    return true;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {  // NOLINT(bugprone-empty-catch): `what` says it.
  }
  tracing.complain(absl::StrCat(tracing.target,
                                ": RuntimeOptions::call_observer threw: ",
                                what,
                                "; the call goes on without it"));
  return false;
}

}  // namespace

std::unique_ptr<TracedCall> TracedCall::begin_traced(const Tracing& tracing,
                                                     absl::string_view method,
                                                     const grpc::ClientContext* context,
                                                     Instant at) {
  std::unique_ptr<CallTrace> trace;
  guarded(*tracing, [&] {
    trace = tracing->observer->call_began(
        {.target = tracing->target, .method = method, .context = context, .at = at});
  });
  if (trace == nullptr) return nullptr;
  return std::unique_ptr<TracedCall>(new TracedCall(tracing, std::move(trace)));
}

TracedCall::TracedCall(Tracing tracing, std::unique_ptr<CallTrace> trace)
    : tracing_(std::move(tracing)), trace_(std::move(trace)) {}

TracedCall::~TracedCall() {
  if (has_started_ && !has_ended_)
    call_ended(kCancelled, "the application gave the call up", std::chrono::steady_clock::now());
}

void TracedCall::started() {
  const std::lock_guard lock(mutex_);
  has_started_ = true;
}

template <typename Event>
void TracedCall::tell(Event event) {
  if (has_thrown_ || has_ended_) return;
  has_thrown_ = !guarded(*tracing_, [&] { event(*trace_); });
}

void TracedCall::waits(DelayType type, absl::string_view reason, bool in_attempt, Instant at) {
  const std::lock_guard lock(mutex_);
  has_started_ = true;  // Only a call that the application has started waits.
  if (delay_ && delay_->type == type) {
    if (delay_->reason == reason) return;
    delay_->reason = std::string(reason);
    return tell([&](CallTrace& trace) { trace.delay_reason_changed(reason, at); });
  }
  close_delay(at);
  if (in_attempt) open_attempt(at);
  delay_ = Delay{type, std::string(reason)};
  tell([&](CallTrace& trace) {
    trace.delay_began(
        {.type = to_string(type), .reason = reason, .in_attempt = in_attempt, .at = at});
  });
}

void TracedCall::waits_no_longer(Instant at) {
  const std::lock_guard lock(mutex_);
  close_delay(at);
}

void TracedCall::attempt_began(Instant at) {
  const std::lock_guard lock(mutex_);
  open_attempt(at);
}

void TracedCall::attempt_sent(absl::string_view cluster,
                              absl::string_view endpoint,
                              AttemptHeaders& headers,
                              Instant at) {
  const std::lock_guard lock(mutex_);
  close_delay(at);
  open_attempt(at);
  tell([&](CallTrace& trace) {
    trace.attempt_sent({.cluster = cluster, .endpoint = endpoint, .at = at}, headers);
  });
}

void TracedCall::attempt_ended(int code,
                               absl::string_view message,
                               std::optional<Duration> retry_after,
                               std::uint32_t previous_attempts,
                               Instant at) {
  const std::lock_guard lock(mutex_);
  close_attempt(code, message, retry_after, at);
  is_transparent_retry_ = retry_after.has_value() && previous_attempts == previous_attempts_;
  previous_attempts_ = previous_attempts;
}

void TracedCall::call_ended(int code, absl::string_view message, Instant at) {
  const std::lock_guard lock(mutex_);
  close_attempt(code, message, std::nullopt, at);
  close_delay(at);
  tell([&](CallTrace& trace) { trace.call_ended({.code = code, .message = message, .at = at}); });
  has_ended_ = true;
}

void TracedCall::open_attempt(Instant at) {
  if (std::exchange(in_attempt_, true)) return;
  close_delay(at);  // A delay that was open before the attempt belongs to the call.
  tell([&](CallTrace& trace) {
    trace.attempt_began({.previous_attempts = previous_attempts_,
                         .is_transparent_retry = is_transparent_retry_,
                         .at = at});
  });
}

void TracedCall::close_attempt(int code,
                               absl::string_view message,
                               std::optional<Duration> retry_after,
                               Instant at) {
  if (!std::exchange(in_attempt_, false)) return;
  close_delay(at);
  tell([&](CallTrace& trace) {
    trace.attempt_ended({.code = code, .message = message, .retry_after = retry_after, .at = at});
  });
}

void TracedCall::close_delay(Instant at) {
  if (!std::exchange(delay_, std::nullopt)) return;
  tell([&](CallTrace& trace) { trace.delay_ended(at); });
}

}  // namespace signalbox::channel
