// SPDX-License-Identifier: Apache-2.0
//
// OpsScope — passes data from the thread that fills a batch to the batch's interceptors.
//
//   call_binder, queued_call, call_interceptor, retried_call ─▶ [OpsScope] ─▶ ops->FillOps()
//                                                                   │             │ on this thread
//       call_interceptor, retried_call ◀── filled_ops() ────────────┤◀── the interceptors of `ops`
//       queue_releaser ◀──────────────── release_held_queue() ──────┘
//
// gRPC shows an interceptor neither the operations of its batch nor the batch's call, and lets the
// channel pass it no argument. But interceptors run inside FillOps(), on the thread that fills the
// batch. So a thread-local variable points to the innermost OpsScope of the thread.

#pragma once

#include <memory>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/call.h>
#include <grpcpp/support/client_interceptor.h>

namespace signalbox::channel {

/// A batch that a thread is filling.
struct FilledOps {
  grpc::internal::CallOpSetInterface* ops = nullptr;
  const grpc::internal::Call* call = nullptr;

  bool is_of(const grpc_call* other) const { return call != nullptr && call->call() == other; }
};

/// While an OpsScope lives, its thread fills the batch `ops` of `call`. `held` is a completion
/// queue on which the caller has a hold (Shutdown() of the queue does not finish while there are
/// holds); null: there is no hold. FillOps() takes a hold for the batch. The call interceptor
/// releases the caller's hold after that, and before the batch starts: afterwards the queue may be
/// destroyed. A queue_releaser() releases the hold before an interceptor of the application runs,
/// because that interceptor may delay the batch. A call without these interceptors has its hold
/// released by ~OpsScope.
class OpsScope {
 public:
  [[gnu::hot]] OpsScope(grpc::internal::CallOpSetInterface* ops,
                        const grpc::internal::Call& call,
                        grpc::CompletionQueue* held = nullptr);
  [[gnu::hot]] ~OpsScope();
  OpsScope(const OpsScope&) = delete;
  OpsScope& operator=(const OpsScope&) = delete;

  const FilledOps& filled() const { return filled_; }

  void release();

 private:
  const FilledOps filled_;
  grpc::CompletionQueue* held_;
  OpsScope* const outer_;
};

/// The batch that this thread is filling. An interceptor that runs meanwhile may belong to another
/// batch: an interceptor can delay a batch, and continue it on a thread that fills a batch of
/// another call. So the caller of filled_ops() must check FilledOps::is_of().
[[gnu::hot]] FilledOps filled_ops();

/// Releases the hold of this thread's innermost OpsScope (`held`) now, if that OpsScope has one.
/// Interceptors call this function, and so does RetriedCall for a batch of its own, which runs no
/// interceptor.
[[gnu::hot]] void release_held_queue();

/// Whether the interceptor is called at this point of the batch.
inline bool has(grpc::experimental::InterceptorBatchMethods& batch,
                grpc::experimental::InterceptionHookPoints point) {
  return batch.QueryInterceptionHookPoint(point);
}

/// Makes interceptors that call release_held_queue(). The channel puts this factory before the
/// application's factories. So gRPC runs its interceptor first when a batch is filled, and the hold
/// is released before an interceptor of the application can delay the batch.
std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface> queue_releaser();

}  // namespace signalbox::channel
