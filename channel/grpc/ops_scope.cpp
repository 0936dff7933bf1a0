// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/ops_scope.hpp"

#include <utility>

#include "actors/io/grpc_access.hpp"

namespace signalbox::channel {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

// Scopes nest: while a batch is filled, an interceptor may make calls, and gRPC may continue
// another call's batch.
thread_local OpsScope* innermost = nullptr;

class QueueReleaser final : public Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* batch) override {
    release_held_queue();
    batch->Proceed();
  }
};

class QueueReleaserFactory final : public ClientInterceptorFactoryInterface {
 public:
  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override { return new QueueReleaser; }
};

}  // namespace

OpsScope::OpsScope(grpc::internal::CallOpSetInterface* ops,
                   const grpc::internal::Call& call,
                   grpc::CompletionQueue* held)
    : filled_{ops, &call}, held_(held), outer_(std::exchange(innermost, this)) {}

OpsScope::~OpsScope() {
  release();
  innermost = outer_;
}

void OpsScope::release() {
  if (held_ != nullptr) GrpcAccess::release_cq(std::exchange(held_, nullptr));
}

FilledOps filled_ops() {
  return innermost == nullptr ? FilledOps() : innermost->filled();
}

void release_held_queue() {
  if (innermost != nullptr) innermost->release();
}

std::unique_ptr<ClientInterceptorFactoryInterface> queue_releaser() {
  return std::make_unique<QueueReleaserFactory>();
}

}  // namespace signalbox::channel
