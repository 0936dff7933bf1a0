// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/grpc_channel.hpp"

#include <utility>

#include "channel/grpc/call_binder.hpp"
#include "channel/grpc/call_interceptor.hpp"
#include "channel/grpc/queued_call.hpp"
#include "channel/grpc/state_watch.hpp"

namespace signalbox::channel {
namespace {

using grpc::internal::Call;
using grpc::internal::CallOpSetInterface;
using grpc::internal::RpcMethod;

class GrpcChannel final : public grpc::ChannelInterface,
                          public std::enable_shared_from_this<GrpcChannel> {
 public:
  GrpcChannel(std::shared_ptr<CallBinder> binder, std::shared_ptr<StateWatch> watch)
      : binder_(std::move(binder)), watch_(std::move(watch)) {}

  grpc_connectivity_state GetState(bool try_to_connect) override {
    return watch_->state(try_to_connect);
  }

 private:
  [[gnu::hot]] Call CreateCall(const RpcMethod& method,
                               grpc::ClientContext* context,
                               grpc::CompletionQueue* cq) override {
    return CreateCallInternal(method, context, cq, 0);
  }

  [[gnu::hot]] Call CreateCallInternal(const RpcMethod& method,
                                       grpc::ClientContext* context,
                                       grpc::CompletionQueue* cq,
                                       std::size_t position) override;

  // gRPC does not call this function: it calls the CallHook of each call, and this channel is never
  // that CallHook.
  void PerformOpsOnCall(CallOpSetInterface* ops, Call* call) override { ops->FillOps(call); }

  // A handle for a method belongs to one connection. A call may get any connection, so there are no
  // handles, and gRPC passes the method's name instead.
  void* RegisterMethod(const char*) override { return nullptr; }

  grpc::CompletionQueue* CallbackCQ() override { return binder_->callback_cq(); }

  void NotifyOnStateChangeImpl(grpc_connectivity_state last,
                               gpr_timespec deadline,
                               grpc::CompletionQueue* cq,
                               void* tag) override {
    watch_->notify(last, deadline, cq, tag);
  }

  bool WaitForStateChangeImpl(grpc_connectivity_state last, gpr_timespec deadline) override {
    return watch_->wait(last, deadline);
  }

  const std::shared_ptr<CallBinder> binder_;
  const std::shared_ptr<StateWatch> watch_;
};

Call GrpcChannel::CreateCallInternal(const RpcMethod& method,
                                     grpc::ClientContext* context,
                                     grpc::CompletionQueue* cq,
                                     std::size_t position) {
  CallSite site{method, *context, cq, shared_from_this(), position};
  CallIntent intent = CallBinder::begin(*context);
  const absl::Status wrong = CallBinder::refuse_unsendable(method.name(), *context);
  if (!wrong.ok()) return binder_->fail(binder_->describe(wrong, intent), intent, site);
  if (binder_->waiting().is_closed()) return binder_->fail(binder_->closed(), intent, site);
  binder_->pick(intent, method.name(), *context);
  // Whether the connection is still up is expensive to check: it costs as much as the pick. A call
  // interceptor checks that at the first batch, so the call is bound here without a check. Only a
  // call that must take a stream is judged.
  const bool is_complete =
      intent.pick.outcome() == PickOutcome::kComplete && CallBinder::lanes(intent) == nullptr;
  if (is_complete && binder_->intercepts(site))
    return binder_->bind(std::move(intent), std::move(site));
  switch (CallBinder::judge(intent)) {
    case Verdict::kBind:
      return binder_->bind(std::move(intent), std::move(site));
    case Verdict::kFail:
      return binder_->fail(intent.pick.status(), intent, site);
    case Verdict::kWait:
      break;
  }
  return QueuedCall::hold(binder_, std::move(intent), site);
}

}  // namespace

std::shared_ptr<grpc::ChannelInterface> make_grpc_channel(GrpcChannelOptions options) {
  options.interceptors =
      with_call_interceptor(std::move(options.interceptors), options.callers, options.tracing);
  auto binder = std::make_shared<CallBinder>(std::move(options));
  auto watch = StateWatch::over(binder);
  return std::make_shared<GrpcChannel>(std::move(binder), std::move(watch));
}

}  // namespace signalbox::channel
