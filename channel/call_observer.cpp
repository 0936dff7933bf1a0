// SPDX-License-Identifier: Apache-2.0
#include "channel/call_observer.hpp"

#include <utility>

#include "actors/io/grpc_connector.hpp"
#include "channel/unsent_call.hpp"

namespace signalbox::channel {
namespace {

using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

thread_local BoundCall* bound_call = nullptr;
thread_local grpc::internal::CallOpSetInterface* filled_ops = nullptr;
thread_local grpc::CompletionQueue* held_queue = nullptr;

bool has(InterceptorBatchMethods& batch, InterceptionHookPoints point) {
  return batch.QueryInterceptionHookPoint(point);
}

class CallObserver final : public grpc::experimental::Interceptor {
 public:
  CallObserver(BoundCall call, ClientRpcInfo& info)
      : call_(std::move(call)),
        own_(info.client_context()),
        method_(info.method()),
        is_unary_(info.type() == ClientRpcInfo::Type::UNARY) {}

  // A call that was started and whose status nobody read was given up.
  ~CallObserver() override { complete(grpc::StatusCode::CANCELLED); }

  void Intercept(InterceptorBatchMethods* batch) override {
    if (held_queue != nullptr) GrpcAccess::release_cq(std::exchange(held_queue, nullptr));
    if (call_.user != nullptr) {
      if (has(*batch, InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) begin(*batch);
      if (has(*batch, InterceptionHookPoints::POST_RECV_STATUS) && end(*batch)) return;
    }
    batch->Proceed();
  }

 private:
  const CallStats* stats() const {
    const lb::ClusterRef* const cluster = call_.intent.pick.cluster();
    return cluster != nullptr ? &cluster->stats() : nullptr;
  }

  // Whether the call, should it prove unsent, can be made again: its one batch holds all of it.
  void begin(InterceptorBatchMethods& batch) {
    started_ = true;
    if (stats() != nullptr) stats()->count_started();
    if (!is_unary_ || call_.intent.unsent != nullptr) return;
    if (!has(batch, InterceptionHookPoints::PRE_SEND_MESSAGE)) return;
    request_ = *batch.GetSerializedSendMessage();
    reply_ = batch.GetRecvMessage();
    ops_ = filled_ops;
  }

  // Returns true when the batch goes on later, or has done so: then this may be gone.
  bool end(InterceptorBatchMethods& batch) {
    const grpc::StatusCode code = batch.GetRecvStatus()->error_code();
    const bool unsent =
        code == grpc::StatusCode::UNAVAILABLE && actors::never_reached_transport(own_->c_call());
    complete(code);
    if (unsent && call_.intent.unsent != nullptr) {
      *call_.intent.unsent = std::move(call_.intent);
    } else if (unsent && again(batch)) {
      return true;
    }
    call_.intent.pick = lb::Pick();
    request_.Clear();
    return false;
  }

  bool again(InterceptorBatchMethods& batch) {
    const bool whole = reply_ != nullptr && ops_ != nullptr &&
                       has(batch, InterceptionHookPoints::POST_RECV_INITIAL_METADATA);
    if (!whole) return false;
    unsent_ = UnsentCall::of({call_.binder, call_.user, method_, &request_, &batch, ops_, reply_},
                             call_.intent);
    if (unsent_ == nullptr) return false;
    unsent_->start();
    return true;
  }

  void complete(grpc::StatusCode code) {
    if (!std::exchange(started_, false) || stats() == nullptr) return;
    stats()->count_completed(static_cast<int>(code));
  }

  BoundCall call_;
  grpc::ClientContext* const own_;
  const char* const method_;
  const bool is_unary_;
  bool started_ = false;
  grpc::ByteBuffer request_;
  void* reply_ = nullptr;
  grpc::internal::CallOpSetInterface* ops_ = nullptr;
  std::unique_ptr<UnsentCall> unsent_;
};

class CallObserverFactory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateClientInterceptor(ClientRpcInfo* info) override {
    if (bound_call == nullptr) return nullptr;
    return new CallObserver(std::move(*std::exchange(bound_call, nullptr)), *info);
  }
};

}  // namespace

ObserverScope::ObserverScope(BoundCall call) : call_(std::move(call)) {
  bound_call = &call_;
}

ObserverScope::~ObserverScope() {
  bound_call = nullptr;
}

OpsScope::OpsScope(grpc::internal::CallOpSetInterface* ops, grpc::CompletionQueue* held) {
  filled_ops = ops;
  held_queue = held;
}

OpsScope::~OpsScope() {
  filled_ops = nullptr;
  held_queue = nullptr;
}

std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
observer_factories() {
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<CallObserverFactory>());
  return factories;
}

}  // namespace signalbox::channel
