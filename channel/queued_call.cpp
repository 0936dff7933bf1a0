// SPDX-License-Identifier: Apache-2.0
#include "channel/queued_call.hpp"

#include <utility>

#include "absl/strings/str_cat.h"
#include <grpc/support/alloc.h>

#include "channel/call_observer.hpp"

namespace signalbox::channel {

using grpc::internal::Call;
using grpc::internal::CallOpSetInterface;
using grpc::internal::RpcMethod;

// What gRPC writes the holding call's status into. Run by its callback threads and never inline:
// TryCancel() holds the context's mutex.
struct QueuedCall::StatusWatch : grpc_completion_queue_functor {
  explicit StatusWatch(std::shared_ptr<QueuedCall> owner) : call(std::move(owner)) {
    functor_run = &StatusWatch::run;
    inlineable = 0;
    grpc_metadata_array_init(&metadata);
  }

  ~StatusWatch() {
    grpc_slice_unref(details);
    grpc_metadata_array_destroy(&metadata);
  }

  StatusWatch(const StatusWatch&) = delete;
  StatusWatch& operator=(const StatusWatch&) = delete;

  static void run(grpc_completion_queue_functor* functor, int) {
    const std::unique_ptr<StatusWatch> self(static_cast<StatusWatch*>(functor));
    char* const text = grpc_slice_to_c_string(self->details);
    const absl::Status status(static_cast<absl::StatusCode>(self->code), text);
    gpr_free(text);
    self->call->holding_ended(status);
  }

  std::shared_ptr<QueuedCall> call;
  grpc_metadata_array metadata;
  grpc_status_code code = GRPC_STATUS_UNKNOWN;
  grpc_slice details = grpc_empty_slice();
};

// Lives in the application's context, and dies with it.
struct QueuedCall::ContextOwner {
  explicit ContextOwner(std::shared_ptr<QueuedCall> owned) : call(std::move(owned)) {}

  ~ContextOwner() { call->context_gone(); }

  ContextOwner(const ContextOwner&) = delete;
  ContextOwner& operator=(const ContextOwner&) = delete;

  std::shared_ptr<QueuedCall> call;
};

QueuedCall::QueuedCall(std::shared_ptr<CallBinder> binder,
                       CallIntent intent,
                       const RpcMethod& method,
                       grpc::ClientContext& context,
                       grpc::CompletionQueue* cq)
    : binder_(std::move(binder)),
      name_(method.name()),
      type_(method.method_type()),
      context_(context),
      cq_(cq),
      intent_(std::move(intent)) {}

QueuedCall::~QueuedCall() {
  if (owns_holding_) grpc_call_unref(holding_);
}

Call QueuedCall::hold() {
  grpc::Channel& anchor = binder_->anchor();
  grpc::CompletionQueue* const callbacks = GrpcAccess::callback_cq(anchor);
  holding_ =
      GrpcAccess::create_call(anchor, RpcMethod(name_.c_str(), type_), &context_, callbacks).call();
  auto self = shared_from_this();
  GrpcAccess::attach(context_, std::make_shared<ContextOwner>(self));
  auto* const watch = new StatusWatch(std::move(self));
  grpc_op op{};
  op.op = GRPC_OP_RECV_STATUS_ON_CLIENT;
  op.data.recv_status_on_client = {&watch->metadata, &watch->code, &watch->details, nullptr};
  grpc_call_start_batch(holding_, &op, 1, watch, nullptr);
  return {holding_, this, cq_};
}

void QueuedCall::PerformOpsOnCall(CallOpSetInterface* ops, Call*) {
  std::unique_lock lock(mutex_);
  if (state_ == State::kBound) {
    lock.unlock();
    return real_.PerformOps(ops);
  }
  GrpcAccess::hold_cq(cq_);
  stored_.push_back(ops);
  if (state_ != State::kPrepared) return;
  // In the list before it can be claimed: whoever binds it takes it out again.
  const auto self = shared_from_this();
  binder_->waiting().add(self);
  state_ = State::kWaiting;
  lock.unlock();
  try_bind();
}

void QueuedCall::wake() {
  try_bind();
}

// --- waiting ----------------------------------------------------------------

void QueuedCall::try_bind() {
  while (claim()) {
    const Verdict verdict = pick_again();
    if (verdict != Verdict::kWait) return bind(verdict);
    if (keep_waiting()) return;
  }
}

bool QueuedCall::claim() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kWaiting) return false;
  state_ = State::kClaimed;
  return true;
}

// Precondition: claimed.
Verdict QueuedCall::pick_again() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return Verdict::kFail;
  }
  if (binder_->waiting().is_closed()) {
    end_early(binder_->closed());
    return Verdict::kFail;
  }
  if (binder_->sequence() == intent_.pick.sequence()) return Verdict::kWait;
  if (binder_->pick(intent_, name_.c_str(), context_)) limit();
  return CallBinder::judge(intent_);
}

// Gives the claim back. False: there is news that found the call claimed, and went by.
bool QueuedCall::keep_waiting() {
  const std::uint64_t seen = intent_.pick.sequence();  // Others may own the pick in a moment.
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kWaiting;
    if (ended_) return false;
  }
  return !binder_->waiting().is_closed() && binder_->sequence() == seen;
}

// The holding call's deadline was fixed when nothing was known of the route.
void QueuedCall::limit() {
  const std::weak_ptr<QueuedCall> weak = weak_from_this();
  alarm_.Set(context_.raw_deadline(), [weak](bool is_over) {
    const auto self = weak.lock();
    if (is_over && self != nullptr) {
      self->holding_ended(absl::DeadlineExceededError("the route's timeout is over"));
    }
  });
}

void QueuedCall::holding_ended(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kGone) return;
    if (state_ == State::kReplaying || state_ == State::kBound) {
      if (absl::IsCancelled(status)) grpc_call_cancel(real_.call(), nullptr);
      return;
    }
  }
  end_early(binder_->explained(
      {status.code(), absl::StrCat(status.message(), " while waiting for a connection")}));
  try_bind();
}

void QueuedCall::end_early(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  if (!ended_) ended_ = status;
}

// --- bound ------------------------------------------------------------------

// Precondition: claimed.
void QueuedCall::bind(Verdict verdict) {
  const auto self = shared_from_this();
  binder_->waiting().remove(this);
  const RpcMethod method(name_.c_str(), type_);
  std::unique_lock lock(mutex_);
  if (ended_) verdict = Verdict::kFail;
  const absl::Status failure = ended_ ? *ended_ : binder_->failure(intent_.pick);
  lock.unlock();
  if (verdict == Verdict::kBind) {
    GrpcAccess::copy_settings(context_, shadow_);
    real_ = binder_->bind(std::move(intent_), method, shadow_, context_, cq_);
    GrpcAccess::rebind(context_, real_.call());  // Returns the holding call.
    owns_holding_ = true;
  } else {
    intent_.pick = lb::Pick();
    real_ = binder_->fail(failure, method, shadow_, cq_, /*observed=*/true);
  }
  lock.lock();
  state_ = State::kReplaying;
  // Whoever cancelled between the choice above and this saw no real call to cancel. A deadline is
  // the real call's own as well.
  if (ended_ && absl::IsCancelled(*ended_)) grpc_call_cancel(real_.call(), nullptr);
  replay(std::move(lock));
}

void QueuedCall::replay(std::unique_lock<std::mutex> lock) {
  while (!stored_.empty()) {
    CallOpSetInterface* const ops = stored_.front();
    stored_.pop_front();
    lock.unlock();
    {
      const OpsScope scope(ops, cq_);
      ops->FillOps(&real_);
    }
    lock.lock();
  }
  if (state_ == State::kReplaying) state_ = State::kBound;
}

void QueuedCall::context_gone() {
  const std::lock_guard lock(mutex_);
  state_ = State::kGone;
  // The last reference: gRPC then cancels the holding call, whose StatusWatch lets go of this.
  if (std::exchange(owns_holding_, false)) grpc_call_unref(holding_);
}

}  // namespace signalbox::channel
