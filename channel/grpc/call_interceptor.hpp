// SPDX-License-Identifier: Apache-2.0
//
// CallInterceptor — observes a call on a connection, from its first batch to its status.
//
//   call_binder::intercept ─▶ factory ─▶ [CallInterceptor], in the context, below the application's
//   call_binder, queued_call ─▶ bound(intent) ─▶ batches ─▶ status ─▶ attempts: the end, or again
//                                                   └────▶ retried_call, for streams, retries, and
//                                                          unary calls of several batches
//
// `attempts` keeps the picks of the call, and `retried_call` its batches, so that the call can be
// made again (D2 of grpc_channel.hpp). For a call that was bound when it was made, the call
// interceptor is also the CallHook: gRPC passes it every batch. So if the connection dies before
// the application starts the first batch, the call interceptor makes the call wait in a
// queued_call.

#pragma once

#include <atomic>
#include <memory>

#include "absl/base/call_once.h"
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include "actors/io/grpc_access.hpp"
#include "channel/grpc/attempts.hpp"
#include "channel/grpc/retried_call.hpp"

namespace signalbox::channel {

class CallInterceptor final : public grpc::experimental::Interceptor, public AttemptedCall {
 public:
  /// `callers` counts the call, and `tracing` has the program's observer; each may be null
  /// (Attempts).
  [[gnu::hot]] CallInterceptor(grpc::experimental::ClientRpcInfo& info,
                               const CallerStats* callers,
                               const TracedCall::Tracing& tracing);
  [[gnu::hot]] ~CallInterceptor() override;

  [[gnu::hot]] void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                                     grpc::internal::Call* call) override;
  [[gnu::hot]] void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override;

  // The functions of AttemptedCall.

  [[gnu::hot]] void bound(CallBinder& binder, CallIntent intent) override;

  bool is_cancelled() const override { return attempts_.is_cancelled(); }

  void waits(const CallBinder& binder,
             const CallIntent& intent,
             DelayType type,
             Instant at) override {
    attempts_.waits(binder, intent, type, at);
  }

  void waits_no_longer(Instant at) override { attempts_.waits_no_longer(at); }

  grpc::internal::Call stand_behind(grpc_call* front, const grpc::internal::Call& real) override;
  [[gnu::hot]] void fill(grpc::internal::CallOpSetInterface* ops,
                         grpc::internal::Call* call,
                         grpc::CompletionQueue* held) override;

  grpc::internal::CallHook& filler() override { return filler_; }

 private:
  class Filler final : public grpc::internal::CallHook {
   public:
    explicit Filler(CallInterceptor& interceptor) : interceptor_(interceptor) {}

    void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                          grpc::internal::Call* call) override {
      interceptor_.fill(ops, call, /*held=*/nullptr);
    }

   private:
    CallInterceptor& interceptor_;
  };

  RetriedCall& watch(int entering);
  [[gnu::hot]] void begin(grpc::experimental::InterceptorBatchMethods& batch);
  [[gnu::hot]] bool end(grpc::experimental::InterceptorBatchMethods& batch);

  Attempts attempts_;
  /// The call that the application has instead of the real call: see
  /// AttemptedCall::stand_behind(). Null: the application has the real call.
  grpc_call* front_ = nullptr;
  grpc::internal::Call real_;  ///< The real call, for which `front_` stands. Set with `front_`.
  /// A once_flag, because two threads may begin a stream at the same time.
  absl::once_flag first_batch_;
  /// The waiting call that replaces this call if the connection died before the first batch; else
  /// null.
  std::shared_ptr<QueuedCall> queued_;
  Filler filler_{*this};
  UnaryBatch unary_;  ///< A unary call's first batch, while no attempt has failed.
  std::shared_ptr<RetriedCall> owned_retried_;
  /// Null while no RetriedCall is needed: the call has had no attempt, or the call is unary, one
  /// batch is the whole call, and no second attempt has followed.
  std::atomic<RetriedCall*> retried_{nullptr};
};

/// The creators of a channel's interceptors: the application's, with the call interceptor's behind
/// them. If the application has interceptors, a queue_releaser() (ops_scope.hpp) comes first.
/// `callers` counts the channel's calls; null: they are not counted. `tracing` has the program's
/// observer of the calls; null: there is none.
GrpcAccess::Creators with_call_interceptor(GrpcAccess::Creators creators,
                                           std::shared_ptr<const CallerStats> callers,
                                           TracedCall::Tracing tracing);

}  // namespace signalbox::channel
