// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/call_interceptor.hpp"

#include <utility>

#include "actors/io/grpc_poller.hpp"
#include "channel/grpc/ops_scope.hpp"
#include "channel/grpc/queued_call.hpp"

namespace signalbox::channel {
namespace {

using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::internal::Call;
using grpc::internal::CallOpSetInterface;
using grpc::internal::RpcMethod;

class CallInterceptorFactory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  CallInterceptorFactory(std::shared_ptr<const CallerStats> callers, TracedCall::Tracing tracing)
      : callers_(std::move(callers)), tracing_(std::move(tracing)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(ClientRpcInfo* info) override {
    auto* const made = new CallInterceptor(*info, callers_.get(), tracing_);
    attach_interceptor(*info->client_context(), *made);
    return made;
  }

 private:
  const std::shared_ptr<const CallerStats> callers_;
  const TracedCall::Tracing tracing_;
};

}  // namespace

// The cast to RpcType is valid: gRPC documents that ClientRpcInfo::Type has the same values.
CallInterceptor::CallInterceptor(ClientRpcInfo& info,
                                 const CallerStats* callers,
                                 const TracedCall::Tracing& tracing)
    : attempts_(*info.client_context(),
                info.method(),
                static_cast<RpcMethod::RpcType>(info.type()),
                callers,
                tracing) {}

CallInterceptor::~CallInterceptor() {
  if (front_ != nullptr) grpc_call_unref(front_);
}

Call CallInterceptor::stand_behind(grpc_call* front, const Call& real) {
  front_ = front;
  real_ = real;
  return {front, this, real.cq(), real.client_rpc_info()};
}

void CallInterceptor::bound(CallBinder& binder, CallIntent intent) {
  attempts_.bound(binder, std::move(intent));
  if (!attempts_.is_unary()) watch(/*entering=*/0);
}

RetriedCall& CallInterceptor::watch(int entering) {
  if (owned_retried_ == nullptr) {
    owned_retried_ = std::make_shared<RetriedCall>(attempts_, *this, entering);
    retried_ = owned_retried_.get();
  }
  return *owned_retried_;
}

void CallInterceptor::PerformOpsOnCall(CallOpSetInterface* ops, Call* call) {
  // absl::call_once makes no system call if no thread waits; std::call_once makes one for every
  // RPC.
  absl::call_once(first_batch_, [&] {
    if (!attempts_.is_alive()) queued_ = attempts_.put_off(*call, *this);
  });
  if (queued_ != nullptr) return queued_->PerformOpsOnCall(ops, call);
  fill(ops, front_ == nullptr ? call : &real_, /*held=*/nullptr);
}

void CallInterceptor::fill(CallOpSetInterface* ops, Call* call, grpc::CompletionQueue* held) {
  if (RetriedCall* const retried = retried_) return retried->fill(ops, *call, held);
  const OpsScope scope(ops, *call, held);
  ops->FillOps(call);
}

void CallInterceptor::Intercept(InterceptorBatchMethods* batch) {
  if (has(*batch, InterceptionHookPoints::PRE_SEND_CANCEL)) {
    // The order matters. This thread sets the flag of is_cancelled(), and then reads retried_. The
    // thread that makes a RetriedCall sets retried_, and then reads that flag. So at least one of
    // the two threads sees the other's write, and no cancellation is lost.
    attempts_.cancel();
    if (RetriedCall* const retried = retried_) retried->cancel();
    return batch->Proceed();
  }
  release_held_queue();
  const bool begins = has(*batch, InterceptionHookPoints::PRE_SEND_INITIAL_METADATA);
  if (begins) attempts_.call_begun();
  if (attempts_.is_bound()) {
    if (begins) begin(*batch);
    RetriedCall* const retried = retried_;
    if (retried != nullptr && retried->intercept(*batch)) return;
    if (has(*batch, InterceptionHookPoints::POST_RECV_STATUS) && end(*batch)) return;
    attempts_.deliver_cookie(*batch);
  } else if (has(*batch, InterceptionHookPoints::POST_RECV_STATUS)) {
    attempts_.call_ended(*batch->GetRecvStatus());  // The call reached no endpoint.
  }
  batch->Proceed();
}

// Begins an attempt with its first batch. Keeps the batch of a unary call, so that the call can be
// made again.
void CallInterceptor::begin(InterceptorBatchMethods& batch) {
  attempts_.count_started();
  attempts_.refuse_credentials();
  if (!attempts_.is_unary()) return;
  if (!has(batch, InterceptionHookPoints::PRE_SEND_MESSAGE)) return;
  unary_.request = *batch.GetSerializedSendMessage();
  unary_.receives = batch.GetRecvMessage() != nullptr;
  const FilledOps filled = filled_ops();
  if (filled.is_of(attempts_.context().c_call())) {
    unary_.ops = filled.ops;
    unary_.call = *filled.call;
  }
  if (!unary_.receives) watch(/*entering=*/1);
}

// Ends an attempt: the batch has received its status. Returns true if another attempt follows;
// RetriedCall then continues the batch later, or has done so already, and this object may be
// destroyed.
bool CallInterceptor::end(InterceptorBatchMethods& batch) {
  // record_served() says that this thread has just served gRPC's sockets. A call without a
  // connection got its status without a socket.
  if (attempts_.has_connection()) actors::GrpcPoller::record_served();
  grpc::Status& status = *batch.GetRecvStatus();
  if (RetriedCall* const retried = retried_) {
    if (!attempts_.has_ended())
      attempts_.ended(status, retried->kept_bytes(), retried->is_observed());
    // If the status is OK and the reply is missing, gRPC's stub would report UNIMPLEMENTED, as if
    // the server did not have the method. INTERNAL is the right code.
    if (unary_.receives && status.ok() && batch.GetRecvMessage() == nullptr)
      status = {grpc::StatusCode::INTERNAL, ""};
    attempts_.call_ended(status);
    return false;
  }
  const bool is_wanted = !status.ok() && unary_.is_whole(batch);
  const auto delay = attempts_.ended(status, unary_.request.Length(), is_wanted);
  if (delay) {
    watch(/*entering=*/0).take_over(unary_, batch, *delay);
    return true;
  }
  unary_.request.Clear();
  attempts_.call_ended(status);
  return false;
}

// --- how the call interceptor gets into a call ----------------------------------

GrpcAccess::Creators with_call_interceptor(GrpcAccess::Creators creators,
                                           std::shared_ptr<const CallerStats> callers,
                                           TracedCall::Tracing tracing) {
  std::erase(creators, nullptr);
  if (!creators.empty()) creators.insert(creators.begin(), queue_releaser());
  creators.push_back(
      std::make_unique<CallInterceptorFactory>(std::move(callers), std::move(tracing)));
  return creators;
}

}  // namespace signalbox::channel
