// SPDX-License-Identifier: Apache-2.0
//
// CallObserver — sees a call that was given to a connection, from its first batch to its status.
//
//   call_binder::intercept ─▶ factory ─▶ [CallObserver], in the context, below the application's
//   call_binder::bind, queued_call ─▶ observe(intent) ─▶ batches ─▶ status: the intent goes
//
// It holds the lb::Pick from binding to the status (D1), counts the attempt in the cluster's
// CallStats, adds the session's cookie to what the server answered (D5), and hands a unary call
// that is to be made again to retried_call (D2). Of a call that was bound when it was made it is
// the hook, too: between that and its first batch, which the application may put off, the
// connection may die, and then the call waits in a queued_call (D2).

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include "channel/call_binder.hpp"
#include "channel/retried_call.hpp"

namespace signalbox::channel {

class QueuedCall;

class CallObserver final : public grpc::experimental::Interceptor, public grpc::internal::CallHook {
 public:
  explicit CallObserver(grpc::experimental::ClientRpcInfo& info);
  ~CallObserver() override;

  /// The call was bound. Before that, it is not observed.
  void observe(std::shared_ptr<CallBinder> binder, CallIntent intent);

  /// Whether the application has cancelled the context.
  bool is_cancelled() const { return cancelled_; }

  void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                        grpc::internal::Call* call) override;
  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override;

 private:
  void begin(grpc::experimental::InterceptorBatchMethods& batch);
  bool end(grpc::experimental::InterceptorBatchMethods& batch);
  std::optional<ReplySlot> whole(grpc::experimental::InterceptorBatchMethods& batch) const;
  void complete(grpc::StatusCode code);

  grpc::ClientContext& context_;
  const std::string method_;  ///< Generic stubs keep the name no longer than it takes.
  const grpc::internal::RpcMethod::RpcType type_;
  std::atomic<bool> cancelled_{false};
  std::shared_ptr<CallBinder> binder_;  ///< Null: not observed yet.
  CallIntent intent_;
  /// What the pick sets; kept beside it, as headers and status may come on two threads.
  std::string set_cookie_;
  std::once_flag first_batch_;          ///< As the hook: a stream may begin on two threads at once.
  std::shared_ptr<QueuedCall> queued_;  ///< As the hook: the call waits, or did.
  bool started_ = false;
  grpc::ByteBuffer request_;
  void* reply_ = nullptr;
  grpc::internal::CallOpSetInterface* ops_ = nullptr;
  std::unique_ptr<RetriedCall> retried_;
  std::atomic<RetriedCall*> cancellable_{nullptr};  ///< retried_, for the thread that cancels.
};

/// While it lives, this thread fills `ops` of `call`. If `held` is set, a hold on that queue is
/// released as soon as the batch has its own, and before it starts or meets an application's
/// interceptor, which may keep it: afterwards the queue may be gone.
class OpsScope {
 public:
  OpsScope(grpc::internal::CallOpSetInterface* ops,
           const grpc_call* call,
           grpc::CompletionQueue* held = nullptr);
  ~OpsScope();
  OpsScope(const OpsScope&) = delete;
  OpsScope& operator=(const OpsScope&) = delete;

 private:
  grpc::internal::CallOpSetInterface* const outer_ops_;
  const grpc_call* const outer_call_;
  grpc::CompletionQueue* const outer_held_;
};

/// The creators, the observer's behind them, and before them one that ends OpsScope's hold.
GrpcAccess::Creators with_observer(GrpcAccess::Creators creators);

/// Adds the session's cookie of the attempt that `call` was to what the application sees of its
/// answer, if that is in the batch: to its headers, or to its trailers if it had no headers
/// (A55-21). The text has to live as long as the application's context. Empty: there is none.
void deliver_cookie(const std::string& set_cookie,
                    const grpc_call* call,
                    grpc::experimental::InterceptorBatchMethods& batch);

/// See CallBinder::intercept.
Interception intercept(const CallSite& site,
                       const GrpcAccess::Creators& creators,
                       std::size_t position);

}  // namespace signalbox::channel
