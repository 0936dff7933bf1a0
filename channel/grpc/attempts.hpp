// SPDX-License-Identifier: Apache-2.0
//
// Attempts — the attempts of a call, one after another: counts them, holds the pick of the current
// one, and decides after each whether another follows.
//
//   call_binder, queued_call ─▶ bound(intent) ─▶ [Attempts] ─▶ count_started ─▶ ended ─┬▶ the end
//                  ▲                                                                   │
//                  └────────────────── make_again ◀── back_off ◀── a delay ────────────┘
//
// Serves unary calls and streams alike. Attempts holds the attempt's lb::Pick from the binding to
// the status (D1 of grpc_channel.hpp), counts the attempt in the cluster's CallStats and the call
// in its CallRecord, and adds the session's cookie to the server's response (D5 there).

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/call.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/support/client_interceptor.h>

#include "channel/grpc/attempt.hpp"
#include "channel/grpc/back_off.hpp"
#include "channel/grpc/call_binder.hpp"
#include "channel/grpc/call_record.hpp"
#include "channel/grpc/queued_call.hpp"
#include "channel/pick/traced_call.hpp"

namespace signalbox::channel {

class Attempts {
 public:
  using RpcType = grpc::internal::RpcMethod::RpcType;

  /// Made when the stub makes the call. `callers` counts the call, and must outlive it; null: the
  /// call is not counted. `tracing` has the program's CallObserver, which sees the call from this
  /// constructor on; null: there is none.
  [[gnu::hot]] Attempts(grpc::ClientContext& context,
                        const char* method,
                        RpcType type,
                        const CallerStats* callers,
                        const TracedCall::Tracing& tracing);
  [[gnu::hot]] ~Attempts();
  Attempts(const Attempts&) = delete;
  Attempts& operator=(const Attempts&) = delete;

  /// Begins an attempt: the attempt has got its grpc_call, or its pick failed
  /// (AttemptedCall::bound).
  [[gnu::hot]] void bound(CallBinder& binder, CallIntent intent);

  bool is_bound() const { return binder_ != nullptr; }

  /// Records that the application has cancelled the context.
  void cancel() { cancelled_ = true; }

  bool is_cancelled() const { return cancelled_; }

  // The next functions are about the call as a whole, and not about one attempt.

  /// The application has started the call, by its first batch. There may be no attempt yet.
  void call_begun() {
    record_.begun();
    if (trace_ != nullptr) trace_->started();
  }

  /// Reports the end of the call to the counters and the observer: the application gets `status`
  /// now.
  [[gnu::hot]] void call_ended(const grpc::Status& status);

  // Show the waits of the call to the program's observer. See the functions of AttemptedCall.
  void waits(const CallBinder& binder, const CallIntent& intent, DelayType type, Instant at);

  void waits_no_longer(Instant at) {
    if (trace_ != nullptr) trace_->waits_no_longer(at);
  }

  grpc::ClientContext& context() const { return context_; }

  bool is_unary() const { return type_ == RpcType::NORMAL_RPC; }

  /// Whether the call was made with the callback API, by a reactor or a callback function.
  bool is_callback(const grpc::internal::Call& call) const {
    return binder_->is_callback_cq(call.cq());
  }

  /// Whether the server's handler may begin when the headers arrive, before the first message. True
  /// if the client streams its messages.
  bool headers_begin_it() const {
    return type_ == RpcType::CLIENT_STREAMING || type_ == RpcType::BIDI_STREAMING;
  }

  /// The most bytes of messages that are kept for further attempts.
  std::size_t most_kept() const { return binder_->retry_buffer_bytes(); }

  // About the current attempt.

  /// Whether the attempt has a connection.
  bool has_connection() const { return CallBinder::has_connection(intent_); }

  /// Whether the picked connection is up now.
  bool is_alive() const { return CallBinder::is_alive(intent_); }

  /// See CallBinder::refuse_credentials().
  void refuse_credentials() const {
    CallBinder::refuse_credentials(intent_, context_, context_.c_call());
  }

  /// The value of the header grpc-previous-rpc-attempts.
  std::uint32_t previous_attempts() const { return intent_.retry.previous_attempts(); }

  /// Counts the attempt as started: it sends its headers now.
  [[gnu::hot]] void count_started();

  /// Whether ended() was called for the attempt.
  bool has_ended() const { return ended_; }

  /// Records that the attempt has ended with `status`. Returns the delay before the next attempt;
  /// nullopt: no attempt follows. Then, if the connection broke off, target and endpoint are added
  /// to the text of `status`. The arguments are the fields of EndedAttempt.
  [[gnu::hot]] std::optional<Duration> ended(grpc::Status& status,
                                             std::optional<std::size_t> request_bytes,
                                             bool is_wanted = true,
                                             bool was_taken = true);

  /// Adds the session's cookie to the metadata that the application gets with this batch: to the
  /// headers, or to the trailers of a response without headers (A55-21). Does nothing, and does not
  /// read the cookie, for a batch that only sends: such a batch may complete on one thread while
  /// another thread picks for the next attempt.
  [[gnu::hot]] void deliver_cookie(grpc::experimental::InterceptorBatchMethods& batch) const;

  /// Like deliver_cookie(), for headers that RetriedCall has received into the context itself, so
  /// that no batch of the application brings them.
  void add_cookie_to_headers() const;

  // About the next attempt.

  /// Runs `over` after the delay, or earlier if the back-off is cancelled or the runtime ends.
  std::shared_ptr<BackOff> back_off(Duration delay, std::function<void()> over) const;

  /// Makes the grpc_call of the next attempt, which replaces `last`, the attempt before it. The new
  /// call may wait for a connection. When the new call has a connection or has failed, the batch
  /// `ops` is filled into it. `owner` is the call that all these attempts belong to.
  void make_again(const grpc::internal::Call& last,
                  AttemptedCall& owner,
                  grpc::internal::CallOpSetInterface& ops);

  /// The connection died before anything was sent: makes the call wait for another pick.
  std::shared_ptr<QueuedCall> put_off(const grpc::internal::Call& call, AttemptedCall& owner);

  /// Makes a call that ends with `status`. The caller owns the reference.
  grpc_call* refuse(const grpc::Status& status, grpc::CompletionQueue& cq) const;

 private:
  std::shared_ptr<QueuedCall> wait(const grpc::internal::Call& call,
                                   AttemptedCall& owner,
                                   CallIntent intent);
  [[gnu::hot]] Instant now() const;
  [[gnu::hot]] void complete(grpc::StatusCode code, Instant now);
  void trace_sent();

  grpc::ClientContext& context_;
  const std::string method_;  ///< A copy: generic stubs free the name early.
  const RpcType type_;
  std::atomic<bool> cancelled_{false};
  CallRecord record_;
  /// Null: no observer of the program sees the call.
  const std::unique_ptr<TracedCall> trace_;
  CallBinder* binder_ = nullptr;  ///< Null before the first bound(). Lives as long as the context.
  CallIntent intent_;
  /// The Set-Cookie of the last attempt's pick; empty while the call looks for its next connection.
  /// A copy, because one thread may deliver the headers while another ends the attempt, which
  /// destroys the pick.
  std::string set_cookie_;
  bool started_ = false;
  Instant started_at_{};  ///< When the current attempt was started.
  Instant ended_at_{};    ///< When the attempt ended, if ended_.
  bool ended_ = false;    ///< The attempt's end has been counted.
};

}  // namespace signalbox::channel
