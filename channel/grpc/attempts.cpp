// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/attempts.hpp"

#include <utility>

namespace signalbox::channel {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::internal::Call;
using grpc::internal::CallOpSetInterface;
using grpc::internal::RpcMethod;

Attempts::Attempts(grpc::ClientContext& context,
                   const char* method,
                   RpcType type,
                   const CallerStats* callers)
    : context_(context), method_(method), type_(type), record_(callers) {}

// A started attempt that has received no status counts as cancelled.
Attempts::~Attempts() {
  if (!started_) return;
  intent_.pick.end(grpc::StatusCode::CANCELLED);
  complete(grpc::StatusCode::CANCELLED, CallRecord::Clock::now());
}

void Attempts::bound(CallBinder& binder, CallIntent intent) {
  binder_ = &binder;
  intent_ = std::move(intent);
  set_cookie_ = intent_.pick.set_cookie();
  ended_ = false;
}

void Attempts::count_started() {
  started_ = true;
  started_at_ = CallRecord::Clock::now();
  if (const CallStats* const stats = CallBinder::stats(intent_)) stats->count_started();
}

void Attempts::complete(grpc::StatusCode code, Instant now) {
  if (!std::exchange(started_, false)) return;
  const CallStats* const stats = CallBinder::stats(intent_);
  if (stats == nullptr) return;
  stats->count_completed(static_cast<int>(code));
  stats->record_duration(now - started_at_);
}

// A call that had an attempt ends with its last attempt, so the clock is not read again.
void Attempts::call_ended(const grpc::Status& status) {
  record_.ended(status.error_code(), ended_ ? ended_at_ : CallRecord::Clock::now());
}

std::optional<Duration> Attempts::ended(grpc::Status& status,
                                        std::optional<std::size_t> request_bytes,
                                        bool is_wanted,
                                        bool was_taken) {
  ended_at_ = CallRecord::Clock::now();
  complete(status.error_code(), ended_at_);
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

void Attempts::deliver_cookie(InterceptorBatchMethods& batch) const {
  const bool has_headers =
      batch.QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA);
  const bool has_status =
      batch.QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_STATUS);
  if ((!has_headers && !has_status) || set_cookie_.empty()) return;
  const bool in_trailers = !GrpcAccess::has_headers(context_);
  if (in_trailers && has_status)
    batch.GetRecvTrailingMetadata()->emplace("set-cookie", set_cookie_);
  if (!in_trailers && has_headers)
    batch.GetRecvInitialMetadata()->emplace("set-cookie", set_cookie_);
}

void Attempts::add_cookie_to_headers() const {
  if (set_cookie_.empty() || !GrpcAccess::has_headers(context_)) return;
  GrpcAccess::received_headers(context_).map()->emplace("set-cookie", set_cookie_);
}

std::shared_ptr<BackOff> Attempts::back_off(Duration delay, std::function<void()> over) const {
  return BackOff::start(binder_->waiting(), delay, std::move(over));
}

void Attempts::make_again(const Call& last, AttemptedCall& owner, CallOpSetInterface& ops) {
  set_cookie_.clear();
  binder_->pick(intent_, method_.c_str(), context_);
  const bool waits = CallBinder::judge(intent_) == Verdict::kWait;
  if (waits && !intent_.is_put_off) binder_->counts().count_queued();
  wait(last, owner, std::exchange(intent_, CallIntent()))->PerformOpsOnCall(&ops, nullptr);
}

std::shared_ptr<QueuedCall> Attempts::put_off(const Call& call, AttemptedCall& owner) {
  CallBinder::put_off(intent_);
  set_cookie_.clear();
  return wait(call, owner, std::move(intent_));
}

std::shared_ptr<QueuedCall> Attempts::wait(const Call& call,
                                           AttemptedCall& owner,
                                           CallIntent intent) {
  const RpcMethod method(method_.c_str(), type_);
  return QueuedCall::instead_of(
      call, method, context_, owner, binder_->shared_from_this(), std::move(intent));
}

grpc_call* Attempts::refuse(const grpc::Status& status, grpc::CompletionQueue& cq) const {
  const absl::Status same(static_cast<absl::StatusCode>(status.error_code()),
                          status.error_message());
  return binder_->refuse(same, method_.c_str(), cq);
}

}  // namespace signalbox::channel
