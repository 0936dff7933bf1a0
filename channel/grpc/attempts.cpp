// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/attempts.hpp"

#include <utility>

#include "absl/strings/string_view.h"

#include "channel/pick/pick_wait.hpp"
#include "messages/header_rules.hpp"

namespace signalbox::channel {
namespace {

// The metadata in the call's context, to which the program's observer may add headers.
class ContextMetadata final : public AttemptHeaders {
 public:
  explicit ContextMetadata(grpc::ClientContext& context) : context_(context) {}

  bool set(absl::string_view name, absl::string_view value) override {
    if (!is_header_name(name) || !is_header_value(name, value)) return false;
    GrpcAccess::erase_metadata(context_, [&](const auto& header) { return header.first == name; });
    context_.AddMetadata(std::string(name), std::string(value));
    return true;
  }

 private:
  grpc::ClientContext& context_;
};

}  // namespace

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::internal::Call;
using grpc::internal::CallOpSetInterface;
using grpc::internal::RpcMethod;

Attempts::Attempts(grpc::ClientContext& context,
                   const char* method,
                   RpcType type,
                   const CallerStats* callers,
                   const TracedCall::Tracing& tracing)
    : context_(context),
      method_(method),
      type_(type),
      record_(callers, tracing != nullptr),
      trace_(TracedCall::begin(tracing, method_, &context, record_.made())) {}

// A started attempt that has received no status counts as cancelled.
Attempts::~Attempts() {
  if (!started_) return;
  intent_.pick.end(grpc::StatusCode::CANCELLED);
  complete(grpc::StatusCode::CANCELLED, now());
}

void Attempts::bound(CallBinder& binder, CallIntent intent) {
  binder_ = &binder;
  intent_ = std::move(intent);
  set_cookie_ = intent_.pick.set_cookie();
  ended_ = false;
}

// The time, for counters and observer. With neither, the clock is not read, and the result is
// unset.
Instant Attempts::now() const {
  const bool is_needed =
      record_.is_open() || trace_ != nullptr || CallBinder::stats(intent_) != nullptr;
  return is_needed ? CallRecord::Clock::now() : Instant();
}

void Attempts::count_started() {
  started_ = true;
  started_at_ = now();
  if (const CallStats* const stats = CallBinder::stats(intent_)) stats->count_started();
  if (trace_ != nullptr) trace_sent();
}

void Attempts::trace_sent() {
  if (!has_connection()) return trace_->attempt_began(started_at_);
  const lb::Pick& pick = intent_.pick;
  const ClusterName& cluster = pick.leaf() ? pick.leaf()->leaf() : pick.cluster()->name();
  ContextMetadata headers(context_);
  trace_->attempt_sent(cluster.str(), pick.connection()->address().str(), headers, started_at_);
}

void Attempts::waits(const CallBinder& binder,
                     const CallIntent& intent,
                     DelayType type,
                     Instant at) {
  if (trace_ == nullptr) return;
  const bool is_resolving = type.reason == DelayReason::kResolving;
  const std::string awaited = is_resolving ? binder.connectivity().awaited() : "";
  const bool is_routed = intent.pick.cluster() != nullptr;
  trace_->waits(type, delay_reason(intent.pick, type, awaited), is_routed, at);
}

void Attempts::complete(grpc::StatusCode code, Instant now) {
  if (!std::exchange(started_, false)) return;
  const CallStats* const stats = CallBinder::stats(intent_);
  if (stats == nullptr) return;
  stats->count_completed(static_cast<int>(code));
  stats->record_duration(now - started_at_);
}

// If the last attempt has ended, the call's end gets the time of the attempt's end, so the clock is
// not read again.
void Attempts::call_ended(const grpc::Status& status) {
  const Instant at = ended_ ? ended_at_ : now();
  record_.ended(status.error_code(), at);
  if (trace_ != nullptr) trace_->call_ended(status.error_code(), status.error_message(), at);
}

std::optional<Duration> Attempts::ended(grpc::Status& status,
                                        std::optional<std::size_t> request_bytes,
                                        bool is_wanted,
                                        bool was_taken) {
  ended_at_ = now();
  complete(status.error_code(), ended_at_);
  ended_ = true;
  const auto delay = binder_->retry(intent_,
                                    {.context = context_,
                                     .status = status,
                                     .request_bytes = request_bytes,
                                     .is_wanted = is_wanted && !is_cancelled(),
                                     .was_taken = was_taken});
  if (!delay) intent_.pick = lb::Pick();
  if (trace_ != nullptr) {
    trace_->attempt_ended(
        status.error_code(), status.error_message(), delay, previous_attempts(), ended_at_);
  }
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
  if (waits && !intent_.pick.is_put_off()) binder_->counts().count_queued();
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
