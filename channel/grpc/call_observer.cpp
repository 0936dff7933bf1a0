// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/call_observer.hpp"

#include <utility>

#include "actors/io/grpc_poller.hpp"
#include "channel/grpc/queued_call.hpp"

namespace signalbox::channel {
namespace {

using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::internal::Call;
using grpc::internal::CallOpSetInterface;
using grpc::internal::RpcMethod;

thread_local CallObserver* made_observer = nullptr;
thread_local FilledOps filled;
thread_local grpc::CompletionQueue* held_queue = nullptr;

bool has(InterceptorBatchMethods& batch, InterceptionHookPoints point) {
  return batch.QueryInterceptionHookPoint(point);
}

// Runs before the application's interceptors.
class QueueReleaserFactory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    class QueueReleaser final : public grpc::experimental::Interceptor {
     public:
      void Intercept(InterceptorBatchMethods* batch) override {
        release_held_queue();
        batch->Proceed();
      }
    };

    return new QueueReleaser;
  }
};

class CallObserverFactory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateClientInterceptor(ClientRpcInfo* info) override {
    made_observer = new CallObserver(*info);
    return made_observer;
  }
};

}  // namespace

// The cast: gRPC documents that both enumerations have equal values.
CallObserver::CallObserver(ClientRpcInfo& info)
    : context_(*info.client_context()),
      method_(info.method()),
      type_(static_cast<RpcMethod::RpcType>(info.type())) {}

// A started call without a received status counts as cancelled.
CallObserver::~CallObserver() {
  if (started_) intent_.pick.end(grpc::StatusCode::CANCELLED);
  complete(grpc::StatusCode::CANCELLED);
  if (front_ != nullptr) grpc_call_unref(front_);
}

Call CallObserver::stand_behind(grpc_call* front, const Call& real) {
  front_ = front;
  real_ = real;
  return {front, this, real.cq(), real.client_rpc_info()};
}

void CallObserver::observe(CallBinder& binder, CallIntent intent) {
  binder_ = &binder;
  intent_ = std::move(intent);
  set_cookie_ = intent_.pick.set_cookie();
  ended_ = false;
  if (type_ != RpcMethod::NORMAL_RPC) watch(/*entering=*/0);
}

void CallObserver::watch(int entering) {
  if (stream_ != nullptr) return;
  owned_stream_ =
      std::make_shared<RetriedStream>(*this, context_, binder_->retry_buffer_bytes(), entering);
  stream_ = owned_stream_.get();
}

void CallObserver::PerformOpsOnCall(CallOpSetInterface* ops, Call* call) {
  // absl::call_once wakes no thread when none waits; std::call_once costs a system call per RPC.
  absl::call_once(first_batch_, [&] {
    if (CallBinder::is_alive(intent_)) return;
    CallBinder::put_off(intent_);
    set_cookie_.clear();
    queued_ = wait(*call, std::move(intent_));
  });
  if (queued_ != nullptr) return queued_->PerformOpsOnCall(ops, call);
  fill(ops, front_ == nullptr ? call : &real_);
}

void CallObserver::fill(CallOpSetInterface* ops, Call* call, grpc::CompletionQueue* held) {
  if (RetriedStream* const stream = stream_) return stream->fill(ops, *call, held);
  const OpsScope scope(ops, *call, held);
  ops->FillOps(call);
}

void CallObserver::Intercept(InterceptorBatchMethods* batch) {
  if (has(*batch, InterceptionHookPoints::PRE_SEND_CANCEL)) {
    // Either this thread sees the repeated call, or the repeating thread sees the cancellation.
    cancelled_ = true;
    if (RetriedCall* const retried = cancellable_) retried->cancel();
    if (RetriedStream* const stream = stream_) stream->cancel();
    return batch->Proceed();
  }
  release_held_queue();
  if (retried_ != nullptr) return retried_->attempt_ended();
  if (binder_ != nullptr) {
    if (has(*batch, InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) begin(*batch);
    RetriedStream* const stream = stream_;
    if (stream != nullptr && stream->intercept(*batch)) return;
    if (has(*batch, InterceptionHookPoints::POST_RECV_STATUS) && end(*batch)) return;
    deliver_cookie(*batch);
  }
  batch->Proceed();
}

void CallObserver::count_started() {
  started_ = true;
  if (const CallStats* const stats = CallBinder::stats(intent_)) stats->count_started();
}

// Stores the data for making the call again, if one batch has all of it.
void CallObserver::begin(InterceptorBatchMethods& batch) {
  count_started();
  if (type_ != RpcMethod::NORMAL_RPC) return;
  if (!has(batch, InterceptionHookPoints::PRE_SEND_MESSAGE)) return;
  request_ = *batch.GetSerializedSendMessage();
  reply_ = batch.GetRecvMessage();
  if (filled.is_of(context_.c_call())) {
    ops_ = filled.ops;
    cq_ = filled.call->cq();
  }
  if (reply_ == nullptr) watch(/*entering=*/1);
}

// Returns true when the batch is continued later, or already was: this may be destroyed then.
bool CallObserver::end(InterceptorBatchMethods& batch) {
  // A call without a connection gets its status without any socket.
  if (CallBinder::stats(intent_) != nullptr) actors::GrpcPoller::note_served();
  grpc::Status& status = *batch.GetRecvStatus();
  if (RetriedStream* const stream = stream_) {
    if (!ended_) ended(status, stream->kept_bytes(), stream->is_observed());
    return false;
  }
  const auto reply = status.ok() ? std::nullopt : whole(batch);
  const auto delay = ended(status, request_.Length(), reply.has_value());
  if (delay) {
    retried_ = std::make_unique<RetriedCall>(HeldBatch{.binder = binder_->shared_from_this(),
                                                       .user = &context_,
                                                       .observer = this,
                                                       .method = method_.c_str(),
                                                       .request = &request_,
                                                       .batch = &batch,
                                                       .ops = ops_,
                                                       .cq = cq_,
                                                       .reply = *reply},
                                             std::move(intent_));
    cancellable_ = retried_.get();
    retried_->start(*delay);
    return true;
  }
  request_.Clear();
  return false;
}

std::optional<ReplySlot> CallObserver::whole(InterceptorBatchMethods& batch) const {
  if (reply_ == nullptr || ops_ == nullptr) return std::nullopt;
  if (!has(batch, InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) return std::nullopt;
  return ReplySlot::of(ops_, reply_);
}

std::optional<Duration> CallObserver::ended(grpc::Status& status,
                                            std::optional<std::size_t> request_bytes,
                                            bool is_wanted,
                                            bool was_taken) {
  complete(status.error_code());
  ended_ = true;
  const auto delay = binder_->retry(intent_,
                                    {.context = context_,
                                     .status = status,
                                     .request_bytes = request_bytes,
                                     .is_wanted = is_wanted && !is_cancelled(),
                                     .was_taken = was_taken});
  if (!delay) intent_.pick = lb::Pick();
  return delay;
}

std::shared_ptr<BackOff> CallObserver::back_off(Duration delay, std::function<void()> over) const {
  return BackOff::start(binder_->waiting(), delay, std::move(over));
}

void CallObserver::make_again(const Call& call, CallOpSetInterface& ops) {
  set_cookie_.clear();
  binder_->pick(intent_, method_.c_str(), context_);
  wait(call, std::exchange(intent_, CallIntent()))->PerformOpsOnCall(&ops, nullptr);
}

std::shared_ptr<QueuedCall> CallObserver::wait(const Call& call, CallIntent intent) {
  const RpcMethod method(method_.c_str(), type_);
  return QueuedCall::instead_of(
      call, method, context_, *this, binder_->shared_from_this(), std::move(intent));
}

void CallObserver::deliver_cookie(InterceptorBatchMethods& batch) const {
  channel::deliver_cookie(set_cookie_, context_, batch);
}

void CallObserver::add_cookie_to_headers() const {
  if (set_cookie_.empty() || !GrpcAccess::has_headers(context_)) return;
  GrpcAccess::received_headers(context_).map()->emplace("set-cookie", set_cookie_);
}

grpc_call* CallObserver::refuse(const grpc::Status& status, grpc::CompletionQueue& cq) const {
  const absl::Status same(static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message());
  return binder_->refuse(same, method_.c_str(), cq);
}

void CallObserver::complete(grpc::StatusCode code) {
  if (!std::exchange(started_, false)) return;
  if (const CallStats* const stats = CallBinder::stats(intent_))
    stats->count_completed(static_cast<int>(code));
}

void deliver_cookie(const std::string& set_cookie,
                    grpc::ClientContext& context,
                    InterceptorBatchMethods& batch) {
  const bool has_headers = has(batch, InterceptionHookPoints::POST_RECV_INITIAL_METADATA);
  const bool has_status = has(batch, InterceptionHookPoints::POST_RECV_STATUS);
  if ((!has_headers && !has_status) || set_cookie.empty()) return;
  const bool in_trailers = !GrpcAccess::has_headers(context);
  if (in_trailers && has_status) batch.GetRecvTrailingMetadata()->emplace("set-cookie", set_cookie);
  if (!in_trailers && has_headers)
    batch.GetRecvInitialMetadata()->emplace("set-cookie", set_cookie);
}

// --- how the observer gets into a call -------------------------------------------

FilledOps filled_ops() {
  return filled;
}

void release_held_queue() {
  if (held_queue != nullptr) GrpcAccess::release_cq(std::exchange(held_queue, nullptr));
}

OpsScope::OpsScope(CallOpSetInterface* ops, const Call& call, grpc::CompletionQueue* held)
    : outer_(std::exchange(filled, {ops, &call})), outer_held_(std::exchange(held_queue, held)) {}

OpsScope::~OpsScope() {
  release_held_queue();
  filled = outer_;
  held_queue = outer_held_;
}

GrpcAccess::Creators with_observer(GrpcAccess::Creators creators) {
  std::erase(creators, nullptr);
  if (!creators.empty()) {
    creators.insert(creators.begin(), std::make_unique<QueueReleaserFactory>());
  }
  creators.push_back(std::make_unique<CallObserverFactory>());
  return creators;
}

// The application's factories may make calls themselves, so made_observer is saved.
Interception intercept(const CallSite& site,
                       const GrpcAccess::Creators& creators,
                       std::size_t position) {
  CallObserver* const outer = std::exchange(made_observer, nullptr);
  auto* const info =
      GrpcAccess::intercept(site.context, site.method, site.channel.get(), creators, position);
  return {info, std::exchange(made_observer, outer)};
}

}  // namespace signalbox::channel
