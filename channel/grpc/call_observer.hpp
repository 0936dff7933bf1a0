// SPDX-License-Identifier: Apache-2.0
//
// CallObserver — sees a call that was given to a connection, from its first batch to its status.
//
//   call_binder::intercept ─▶ factory ─▶ [CallObserver], in the context, below the application's
//   call_binder::bind, queued_call ─▶ observe(intent) ─▶ batches ─▶ status: the intent goes
//
// It holds the lb::Pick from binding to the status (D1), counts the attempt in the cluster's
// CallStats, adds the session's cookie to what the server answered (D5), and hands a call that is
// to be made again to retried_call, if it is one batch, or to retried_stream (D2). Of a call that
// was bound when it was made it is the hook, too: between that and its first batch, which the
// application may put off, the connection may die, and then the call waits in a queued_call (D2).

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

  /// The call was bound. Before that, it is not observed.
  [[gnu::hot]] void observe(CallBinder& binder, CallIntent intent);

  /// The application gets `front` for the call, and never learns of another. gRPC's reactors ask
  /// the call that they were made with whether response headers came. The first attempt may have
  /// had none where a later one has. And gRPC must not be asked about headers that were cut off:
  /// see GrpcAccess::has_headers(). Nothing runs on the front, so that its answer is always yes;
  /// where it is no, retried_stream says so. Takes over the reference.
  grpc::internal::Call stand_behind(grpc_call* front, const grpc::internal::Call& real);

  /// Whether the application has cancelled the context.
  bool is_cancelled() const { return cancelled_; }

  [[gnu::hot]] void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                                     grpc::internal::Call* call) override;
  [[gnu::hot]] void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override;

  /// Fills a batch of a call that has been bound. `held`: see OpsScope.
  [[gnu::hot]] void fill(grpc::internal::CallOpSetInterface* ops,
                         grpc::internal::Call* call,
                         grpc::CompletionQueue* held = nullptr);

  /// Does just that: the hook of a call that stays where it is.
  grpc::internal::CallHook& filler() { return filler_; }

  // What retried_stream does with the call's attempts.

  /// Whether the attempt has a connection.
  bool has_connection() const { return CallBinder::stats(intent_) != nullptr; }

  /// Whether a reactor or a function of the callback API hears of the call.
  bool is_callback(const grpc::internal::Call& call) const {
    return binder_->is_callback_cq(call.cq());
  }

  /// Whether a server's handler may begin when the headers have come, and no message has.
  bool headers_begin_it() const {
    return type_ == grpc::internal::RpcMethod::CLIENT_STREAMING ||
           type_ == grpc::internal::RpcMethod::BIDI_STREAMING;
  }

  /// grpc-previous-rpc-attempts of the one that runs.
  std::uint32_t previous_attempts() const { return intent_.retry.previous_attempts(); }

  /// One has sent its headers.
  [[gnu::hot]] void count_started();

  /// It has ended. Returns after how long another is to follow; nullopt: the call ends with the
  /// status.
  [[gnu::hot]] std::optional<Duration> ended(grpc::Status& status,
                                             std::optional<std::size_t> request_bytes,
                                             bool is_wanted,
                                             bool was_taken = true);

  /// See BackOff::start.
  std::shared_ptr<BackOff> back_off(Duration delay, std::function<void()> over) const;

  /// Picks again, and fills `ops` into the call that is made then.
  void make_again(const grpc::internal::Call& call, grpc::internal::CallOpSetInterface& ops);

  /// Of batches that go on without having been intercepted, see ::deliver_cookie. What only sends
  /// has nothing of it, and may come back while the next attempt is picked.
  [[gnu::hot]] void deliver_cookie(grpc::experimental::InterceptorBatchMethods& batch) const;

  /// The same, where the context has the headers already, and no batch brings them.
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
  const std::string method_;  ///< Generic stubs keep the name no longer than it takes.
  const grpc::internal::RpcMethod::RpcType type_;
  std::atomic<bool> cancelled_{false};
  CallBinder* binder_ = nullptr;  ///< Null: not observed yet. It lives as long as the context.
  CallIntent intent_;
  /// What the pick of the attempt that runs sets, and empty while none does; kept beside it, as
  /// headers and status may come on two threads.
  std::string set_cookie_;
  grpc_call* front_ = nullptr;          ///< Null: the application has the call itself.
  grpc::internal::Call real_;           ///< Behind the front.
  absl::once_flag first_batch_;         ///< As the hook: a stream may begin on two threads at once.
  std::shared_ptr<QueuedCall> queued_;  ///< As the hook: the call waits, or did.
  bool started_ = false;
  bool ended_ = false;  ///< The attempt's end has been counted.
  Filler filler_{*this};
  grpc::ByteBuffer request_;
  void* reply_ = nullptr;
  grpc::internal::CallOpSetInterface* ops_ = nullptr;
  grpc::CompletionQueue* cq_ = nullptr;
  std::unique_ptr<RetriedCall> retried_;
  std::atomic<RetriedCall*> cancellable_{nullptr};  ///< retried_, for the thread that cancels.
  std::shared_ptr<RetriedStream> owned_stream_;
  std::atomic<RetriedStream*> stream_{nullptr};  ///< Null: one batch, or never made again.
};

/// What a thread fills.
struct FilledOps {
  grpc::internal::CallOpSetInterface* ops = nullptr;
  const grpc::internal::Call* call = nullptr;

  bool is_of(const grpc_call* other) const { return call != nullptr && call->call() == other; }
};

/// What this thread fills. An interceptor may go on with a batch while the thread fills another
/// call's.
FilledOps filled_ops();

/// While it lives, this thread fills `ops` of `call`. If `held` is set, a hold on that queue is
/// released as soon as the batch has its own, and before it starts or meets an application's
/// interceptor, which may keep it: afterwards the queue may be gone.
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

/// Ends the hold of this thread's OpsScope, if it has one, now: for batches that no interceptor
/// meets.
[[gnu::hot]] void release_held_queue();

/// The creators, the observer's behind them, and before them one that ends OpsScope's hold.
GrpcAccess::Creators with_observer(GrpcAccess::Creators creators);

/// Adds the session's cookie of the attempt in `context` to what the application sees of its
/// answer, if that is in the batch: to its headers, or to its trailers if it had no headers
/// (A55-21). The text has to live as long as the application's context. Empty: there is none.
[[gnu::hot]] void deliver_cookie(const std::string& set_cookie,
                                 grpc::ClientContext& context,
                                 grpc::experimental::InterceptorBatchMethods& batch);

/// See CallBinder::intercept.
[[gnu::hot]] Interception intercept(const CallSite& site,
                                    const GrpcAccess::Creators& creators,
                                    std::size_t position);

}  // namespace signalbox::channel
