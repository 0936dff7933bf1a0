// SPDX-License-Identifier: Apache-2.0
//
// CallObserver — observes a call on a connection, from its first batch to its status.
//
//   call_binder::intercept ─▶ factory ─▶ [CallObserver], in the context, below the application's
//   call_binder::bind, queued_call ─▶ observe(intent) ─▶ batches ─▶ status: the intent goes
//
// It holds the lb::Pick from binding to the status (D1), counts the attempt in the cluster's
// CallStats, and adds the session's cookie to the server's response (D5). It hands a call that is
// to be made again to retried_call, if the call is one batch, or to retried_stream (D2).
//
// For a call that was bound when it was made, it is also the call's hook. The application may delay
// the first batch, and the connection may die before it. The call then waits in a queued_call (D2).

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/call_once.h"
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include "channel/grpc/call_binder.hpp"
#include "channel/grpc/retried_call.hpp"
#include "channel/grpc/retried_stream.hpp"

namespace signalbox::channel {

class QueuedCall;

class CallObserver final : public grpc::experimental::Interceptor, public grpc::internal::CallHook {
 public:
  [[gnu::hot]] explicit CallObserver(grpc::experimental::ClientRpcInfo& info);
  [[gnu::hot]] ~CallObserver() override;

  /// The call was bound. Before that, the call is not observed.
  [[gnu::hot]] void observe(CallBinder& binder, CallIntent intent);

  /// Gives the application `front` instead of the real call; the application never sees another
  /// call. Takes over the reference.
  ///
  /// gRPC's reactors ask the call that they were made with whether response headers came. The first
  /// attempt may have had no headers although a later attempt has them. Also, gRPC must not be
  /// asked about headers that were cut off: see GrpcAccess::has_headers(). Nothing runs on the
  /// front, so its answer is always yes; retried_stream reports a response without headers.
  grpc::internal::Call stand_behind(grpc_call* front, const grpc::internal::Call& real);

  /// Whether the application has cancelled the context.
  bool is_cancelled() const { return cancelled_; }

  [[gnu::hot]] void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                                     grpc::internal::Call* call) override;
  [[gnu::hot]] void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override;

  /// Fills a batch of a bound call. `held`: see OpsScope.
  [[gnu::hot]] void fill(grpc::internal::CallOpSetInterface* ops,
                         grpc::internal::Call* call,
                         grpc::CompletionQueue* held = nullptr);

  /// The hook of a call that stays on its connection: calls fill() and nothing else.
  grpc::internal::CallHook& filler() { return filler_; }

  // For retried_stream.

  /// Whether the attempt has a connection.
  bool has_connection() const { return CallBinder::stats(intent_) != nullptr; }

  /// Whether the call is one of the callback API: a reactor, or a function.
  bool is_callback(const grpc::internal::Call& call) const {
    return binder_->is_callback_cq(call.cq());
  }

  /// Whether a server's handler may begin with the headers, before any message.
  bool headers_begin_it() const {
    return type_ == grpc::internal::RpcMethod::CLIENT_STREAMING ||
           type_ == grpc::internal::RpcMethod::BIDI_STREAMING;
  }

  /// grpc-previous-rpc-attempts of the current attempt.
  std::uint32_t previous_attempts() const { return intent_.retry.previous_attempts(); }

  /// The current attempt has sent its headers.
  [[gnu::hot]] void count_started();

  /// The current attempt has ended. Returns the delay before the next attempt; nullopt: the call
  /// ends with the status.
  [[gnu::hot]] std::optional<Duration> ended(grpc::Status& status,
                                             std::optional<std::size_t> request_bytes,
                                             bool is_wanted,
                                             bool was_taken = true);

  /// See BackOff::start.
  std::shared_ptr<BackOff> back_off(Duration delay, std::function<void()> over) const;

  /// Picks again, and fills `ops` into the new call.
  void make_again(const grpc::internal::Call& call, grpc::internal::CallOpSetInterface& ops);

  /// As ::deliver_cookie, for batches that retried_stream releases. A batch that only sends has no
  /// metadata, and may come back while the next attempt is picked.
  [[gnu::hot]] void deliver_cookie(grpc::experimental::InterceptorBatchMethods& batch) const;

  /// As deliver_cookie(), when the context already has the headers and no batch brings them.
  void add_cookie_to_headers() const;

  /// A call that ends with this status; the caller owns the reference.
  grpc_call* refuse(const grpc::Status& status, grpc::CompletionQueue& cq) const;

 private:
  class Filler final : public grpc::internal::CallHook {
   public:
    explicit Filler(CallObserver& observer) : observer_(observer) {}

    void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                          grpc::internal::Call* call) override {
      observer_.fill(ops, call);
    }

   private:
    CallObserver& observer_;
  };

  void watch(int entering);
  std::shared_ptr<QueuedCall> wait(const grpc::internal::Call& call, CallIntent intent);
  [[gnu::hot]] void begin(grpc::experimental::InterceptorBatchMethods& batch);
  [[gnu::hot]] bool end(grpc::experimental::InterceptorBatchMethods& batch);
  std::optional<ReplySlot> whole(grpc::experimental::InterceptorBatchMethods& batch) const;
  [[gnu::hot]] void complete(grpc::StatusCode code);

  grpc::ClientContext& context_;
  const std::string method_;  ///< A copy: generic stubs free the name early.
  const grpc::internal::RpcMethod::RpcType type_;
  std::atomic<bool> cancelled_{false};
  CallBinder* binder_ = nullptr;  ///< Null: not observed yet. It lives as long as the context.
  CallIntent intent_;
  /// The cookie of the current attempt's pick; empty while there is no attempt. A copy, because
  /// headers and status may come on two threads.
  std::string set_cookie_;
  grpc_call* front_ = nullptr;          ///< Null: the application has the real call.
  grpc::internal::Call real_;           ///< The call behind the front.
  absl::once_flag first_batch_;         ///< For the hook: two threads may begin a stream at once.
  std::shared_ptr<QueuedCall> queued_;  ///< For the hook: the call waits, or has waited.
  bool started_ = false;
  bool ended_ = false;  ///< The attempt's end has been counted.
  Filler filler_{*this};
  grpc::ByteBuffer request_;
  void* reply_ = nullptr;
  grpc::internal::CallOpSetInterface* ops_ = nullptr;
  grpc::CompletionQueue* cq_ = nullptr;
  std::unique_ptr<RetriedCall> retried_;
  std::atomic<RetriedCall*> cancellable_{nullptr};  ///< retried_, for the cancelling thread.
  std::shared_ptr<RetriedStream> owned_stream_;
  std::atomic<RetriedStream*> stream_{nullptr};  ///< Null: one batch, or never made again.
};

/// A batch that a thread is filling.
struct FilledOps {
  grpc::internal::CallOpSetInterface* ops = nullptr;
  const grpc::internal::Call* call = nullptr;

  bool is_of(const grpc_call* other) const { return call != nullptr && call->call() == other; }
};

/// The batch that this thread is filling. An interceptor may continue a batch while its thread
/// fills a batch of another call.
FilledOps filled_ops();

/// While it lives, this thread fills `ops` of `call`. `held`: a queue with a hold, which is
/// released as soon as the batch has its own hold. The release comes before the batch starts or
/// meets an application's interceptor, which may delay the batch: afterwards the queue may be
/// destroyed.
class OpsScope {
 public:
  [[gnu::hot]] OpsScope(grpc::internal::CallOpSetInterface* ops,
                        const grpc::internal::Call& call,
                        grpc::CompletionQueue* held = nullptr);
  [[gnu::hot]] ~OpsScope();
  OpsScope(const OpsScope&) = delete;
  OpsScope& operator=(const OpsScope&) = delete;

 private:
  const FilledOps outer_;
  grpc::CompletionQueue* const outer_held_;
};

/// Releases the hold of this thread's OpsScope now, if it has one. For batches that meet no
/// interceptor.
[[gnu::hot]] void release_held_queue();

/// The application's creators, with the observer's behind them. If there are any, a creator of an
/// interceptor that releases OpsScope's hold comes first.
GrpcAccess::Creators with_observer(GrpcAccess::Creators creators);

/// Adds the session's cookie to the metadata that the application gets, if the batch brings it: to
/// the headers, or to the trailers of a response without headers (A55-21). `context` is the
/// attempt's. The text must live as long as the application's context. An empty text adds nothing.
[[gnu::hot]] void deliver_cookie(const std::string& set_cookie,
                                 grpc::ClientContext& context,
                                 grpc::experimental::InterceptorBatchMethods& batch);

/// See CallBinder::intercept.
[[gnu::hot]] Interception intercept(const CallSite& site,
                                    const GrpcAccess::Creators& creators,
                                    std::size_t position);

}  // namespace signalbox::channel
