// SPDX-License-Identifier: Apache-2.0
//
// call_observer — sees the end of a call that was given to a connection, and lets go of its pick.
//
//   call_binder::bind ─▶ ObserverScope ─▶ factory (inside CreateCall) ─▶ observer, in the context
//
// An interceptor factory on every connection's channel. It makes an observer exactly for the call
// that the running thread is creating under an ObserverScope; calls that anyone else makes on the
// channel get none. The observer holds the lb::Pick from binding to the status (D1), counts the
// attempt in the cluster's CallStats, and hands a call that was never sent to unsent_call (D2).

#pragma once

#include <memory>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include "channel/call_binder.hpp"

namespace signalbox::channel {

/// What the observer of one call owns.
struct BoundCall {
  std::shared_ptr<CallBinder> binder;
  grpc::ClientContext* user = nullptr;  ///< Null: there is no attempt to observe.
  CallIntent intent;
};

/// While it lives, the next call that this thread creates is the one that was bound.
class ObserverScope {
 public:
  explicit ObserverScope(BoundCall call);
  ~ObserverScope();
  ObserverScope(const ObserverScope&) = delete;
  ObserverScope& operator=(const ObserverScope&) = delete;

 private:
  BoundCall call_;
};

/// While it lives, this thread fills `ops`. If `held` is set, a hold on that queue is released as
/// soon as the batch has its own, and before it starts: afterwards the queue may be gone.
class OpsScope {
 public:
  explicit OpsScope(grpc::internal::CallOpSetInterface* ops, grpc::CompletionQueue* held = nullptr);
  ~OpsScope();
  OpsScope(const OpsScope&) = delete;
  OpsScope& operator=(const OpsScope&) = delete;
};

/// For GrpcConnectorOptions::interceptors.
std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
observer_factories();

}  // namespace signalbox::channel
