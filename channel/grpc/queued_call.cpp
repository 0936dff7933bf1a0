// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/queued_call.hpp"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

#include "channel/grpc/ops_scope.hpp"

namespace signalbox::channel {

using grpc::internal::Call;
using grpc::internal::CallOpSetInterface;
using grpc::internal::RpcMethod;

// An object that the application's context owns until the context is destroyed. It keeps the
// QueuedCall alive until then.
struct QueuedCall::ContextOwner {
  ContextOwner(std::shared_ptr<QueuedCall> owned, std::shared_ptr<void> more)
      : call(std::move(owned)), rest(std::move(more)) {}

  ~ContextOwner() { call->context_gone(); }

  ContextOwner(const ContextOwner&) = delete;
  ContextOwner& operator=(const ContextOwner&) = delete;

  std::shared_ptr<QueuedCall> call;
  std::shared_ptr<void> rest;  ///< The objects that the context owned before this object.
};

QueuedCall::QueuedCall(std::shared_ptr<CallBinder> binder,
                       CallIntent intent,
                       const RpcMethod& method,
                       grpc::ClientContext& context,
                       grpc::CompletionQueue* cq)
    : binder_(std::move(binder)),
      name_(method.name()),
      context_(context),
      cq_(cq),
      intent_(std::move(intent)) {}

QueuedCall::~QueuedCall() {
  for (grpc_call* const call : earlier_)
    grpc_call_unref(call);
}

Call QueuedCall::hold(std::shared_ptr<CallBinder> binder, CallIntent intent, const CallSite& site) {
  const auto self = std::make_shared<QueuedCall>(
      std::move(binder), std::move(intent), site.method, site.context, site.cq);
  self->count();
  self->make_holding_call();
  self->interception_ = self->binder_->intercept(site);
  GrpcAccess::set_call(
      site.context, self->holding_, std::make_shared<ContextOwner>(self, site.channel));
  self->watch_holding_call();
  return {self->holding_, self.get(), site.cq, self->interception_.info};
}

std::shared_ptr<QueuedCall> QueuedCall::instead_of(const Call& call,
                                                   const RpcMethod& method,
                                                   grpc::ClientContext& context,
                                                   AttemptedCall& interceptor,
                                                   std::shared_ptr<CallBinder> binder,
                                                   CallIntent intent) {
  auto self = std::make_shared<QueuedCall>(
      std::move(binder), std::move(intent), method, context, call.cq());
  if (self->intent_.pick.is_put_off()) self->count();
  self->make_holding_call();
  self->interception_ = {call.client_rpc_info(), &interceptor};
  GrpcAccess::own(context, std::make_shared<ContextOwner>(self, GrpcAccess::owned(context)));
  self->earlier_.push_back(GrpcAccess::rebind(context, self->holding_));
  // rebind() has put the holding call into the context. A cancellation before that reached only the
  // context's earlier call, so the holding call is cancelled here.
  if (interceptor.is_cancelled()) grpc_call_cancel(self->holding_, nullptr);
  self->watch_holding_call();
  return self;
}

void QueuedCall::count() {
  binder_->counts().count_queued();
  if (intent_.pick.is_put_off()) binder_->counts().count_repicked();
}

void QueuedCall::make_holding_call() {
  holding_ = GrpcAccess::make_call(GrpcAccess::c_channel(binder_->anchor()),
                                   name_.c_str(),
                                   context_,
                                   binder_->poller().callback_queue());
}

void QueuedCall::watch_holding_call() {
  const auto self = shared_from_this();
  actors::watch_end(holding_, /*send=*/false, [self](const absl::Status& status) {
    self->holding_ended(status);
  });
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
  // The call enters the wait list before its state allows a thread to claim it: the thread that
  // claims and binds the call also removes it from the list.
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

// Picks again, unless the call or the runtime has ended, the call is still delayed, or nothing was
// published since the last pick. A call that was given a dead connection also picks again from the
// same snapshot, which may have another endpoint for it. Precondition: this thread has claimed the
// call (State::kClaimed).
Verdict QueuedCall::pick_again() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return Verdict::kFail;
    }
    if (binder_->waiting().is_closed()) return Verdict::kFail;
    const Verdict verdict = stream_ != nullptr ? claim_stream() : pick_next();
    const bool needs_stream = verdict == Verdict::kWait && CallBinder::has_connection(intent_);
    if (!needs_stream || stream_ != nullptr) return verdict;
    wait_for_stream(*CallBinder::lanes(intent_));
  }
}

// Binds the call when it has got its stream. If the stream's connection has died meanwhile, or the
// endpoint has no connection any more, the call picks again, as if it had had a dead connection.
Verdict QueuedCall::claim_stream() {
  switch (stream_->claim(intent_.pick)) {
    case lb::StreamWait::Answer::kWaiting:
      return Verdict::kWait;
    case lb::StreamWait::Answer::kTaken:
      stream_ = nullptr;
      return Verdict::kBind;
    case lb::StreamWait::Answer::kLost:
    case lb::StreamWait::Answer::kGone:
      break;
  }
  stream_ = nullptr;
  CallBinder::put_off(intent_);
  return pick_next();
}

// Takes a place among the calls that wait for a stream. The stream may come at once. The thread
// that frees a stream is ending another call, perhaps with a lock held, so the call is bound on
// another thread.
void QueuedCall::wait_for_stream(const lb::StreamLanes& streams) {
  const std::weak_ptr<QueuedCall> weak = weak_from_this();
  const auto alarm = std::make_shared<grpc::Alarm>();
  stream_ = streams.wait([weak, alarm] {
    alarm->Set(gpr_now(GPR_CLOCK_MONOTONIC), [weak](bool /*is_over*/) {
      const auto self = weak.lock();
      if (self != nullptr) self->try_bind();
    });
  });
}

Verdict QueuedCall::pick_next() {
  if (intent_.pick.delay() > Duration::zero()) {
    if (!has_waited()) return Verdict::kWait;
    intent_.pick.end_delay();
  } else if (binder_->sequence() == intent_.pick.sequence()) {
    const Verdict verdict = intent_.pick.is_put_off() ? Verdict::kWait : CallBinder::judge(intent_);
    if (!may_go_elsewhere()) return verdict;
  }
  Verdict verdict = Verdict::kWait;
  do {
    if (binder_->pick(intent_, name_.c_str(), context_)) limit();
    verdict = CallBinder::judge(intent_);
  } while (may_go_elsewhere());
  return verdict;
}

// Whether the snapshot that has a dead connection for the call may have another one.
bool QueuedCall::may_go_elsewhere() const {
  return intent_.pick.is_put_off() && intent_.lost->may_go_elsewhere();
}

// Releases this thread's claim on the call. False: while the call was claimed, it ended, its delay
// ended, a new snapshot came, or the wait list was closed. wake() did nothing then, so the caller
// must try again now.
bool QueuedCall::keep_waiting() {
  // The pick is read before the claim is released: afterwards another thread may change it.
  const std::uint64_t seen = intent_.pick.sequence();
  const bool is_delayed = intent_.pick.delay() > Duration::zero();
  const std::shared_ptr<const lb::StreamWait> stream = stream_;
  const DelayType type = delay_type(intent_.pick);
  const Instant now = std::chrono::steady_clock::now();
  wait_.goes_on(type, now, binder_->callers());
  if (interception_.interceptor != nullptr)
    interception_.interceptor->waits(*binder_, intent_, type, now);
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kWaiting;
    if (ended_) return false;
    if (is_delayed && delay_ != Delay::kRunning) return false;
  }
  if (binder_->waiting().is_closed()) return false;
  if (stream != nullptr) return !stream->is_over();
  return is_delayed || binder_->sequence() == seen;
}

// Whether the delay by filters is over. Precondition: this thread has claimed the call
// (State::kClaimed), and the call is delayed. The first call of this function starts the delay: at
// the first batch, or later, when the route becomes known.
bool QueuedCall::has_waited() {
  {
    const std::lock_guard lock(mutex_);
    if (delay_ != Delay::kNone) return delay_ == Delay::kOver;
    delay_ = Delay::kRunning;
  }
  const gpr_timespec due =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                   gpr_time_from_nanos(intent_.pick.delay().count(), GPR_TIMESPAN));
  const std::weak_ptr<QueuedCall> weak = weak_from_this();
  delay_alarm_.Set(due, [weak](bool is_over) {
    const auto self = weak.lock();
    if (!is_over || self == nullptr) return;
    {
      const std::lock_guard lock(self->mutex_);
      self->delay_ = Delay::kOver;
    }
    self->try_bind();
  });
  return false;
}

// Sets a timer for the route's timeout. The holding call cannot report this timeout, because the
// holding call's deadline was fixed before the route was known.
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
  end_early(status);
  try_bind();
}

bool QueuedCall::is_cancelled() const {
  return interception_.interceptor != nullptr && interception_.interceptor->is_cancelled();
}

// The status of a call that was cancelled or timed out (`how`) while it waited. It includes the
// error of the last pick, which would have failed a call without wait_for_ready. Precondition: this
// thread has claimed the call (State::kClaimed).
absl::Status QueuedCall::why_waiting_ended(const absl::Status& how) const {
  const lb::Pick& last = intent_.pick;
  const bool is_delayed = last.delay() > Duration::zero();
  const std::string doing = is_delayed ? "delayed by a filter"
                            : last.cluster() == nullptr
                                ? "waiting for " + binder_->connectivity().awaited()
                            : CallBinder::has_connection(intent_) ? waiting_for_stream()
                                                                  : "waiting for a connection";
  const std::string error =
      last.status().ok() ? "" : absl::StrCat("; last error: ", last.status().message());
  return binder_->describe({how.code(), absl::StrCat(how.message(), " while ", doing, error)},
                           intent_);
}

// "waiting for a stream: endpoint 10.0.0.1:80: all 4 streams of 2 connections are in use".
std::string QueuedCall::waiting_for_stream() const {
  const lb::StreamLanes* const streams = CallBinder::lanes(intent_);
  return absl::StrCat("waiting for a stream: endpoint ",
                      intent_.pick.connection()->address().str(),
                      ": ",
                      streams != nullptr ? streams->text() : "its stream has just come");
}

void QueuedCall::end_early(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  if (!ended_) ended_ = status;
}

// --- bound ------------------------------------------------------------------

// Replaces the holding call by the real call (kBind), or else by a call that fails. Precondition:
// this thread has claimed the call (State::kClaimed).
void QueuedCall::bind(Verdict verdict) {
  const auto self = shared_from_this();
  binder_->waiting().remove(this);
  const Instant now = std::chrono::steady_clock::now();
  wait_.ended(now, binder_->callers());
  if (interception_.interceptor != nullptr) interception_.interceptor->waits_no_longer(now);
  // A cancellation also ends the holding call, and holding_ended() reports that, but perhaps only
  // after this function. So the cancellation is checked here.
  if (is_cancelled()) end_early(absl::CancelledError("CANCELLED"));
  std::unique_lock lock(mutex_);
  const std::optional<absl::Status> ended = ended_;
  lock.unlock();
  if (ended) verdict = Verdict::kFail;
  const bool is_closed = binder_->waiting().is_closed();
  const absl::Status failure = ended       ? why_waiting_ended(*ended)
                               : is_closed ? binder_->closed()
                                           : intent_.pick.status();
  grpc_call* real = nullptr;
  if (verdict == Verdict::kBind) {
    real = binder_->connect(intent_, name_.c_str(), context_, *cq_);
    GrpcAccess::apply_credentials(context_, real);
    binder_->hand_over(intent_, interception_.interceptor);
  } else {
    real = binder_->refuse(failure, name_.c_str(), *cq_);
    if (!ended && !is_closed) binder_->hand_over_failed(intent_, interception_.interceptor);
    intent_.pick = lb::Pick();
    stream_ = nullptr;  // Another call gets the place or the stream.
  }
  grpc::internal::CallHook* hook = binder_.get();
  if (interception_.interceptor != nullptr) hook = &interception_.interceptor->filler();
  real_ = Call(real, hook, cq_, interception_.info);
  grpc_call_ref(real);  // A reference for holding_ended(), which may run while the context ends.
  earlier_.push_back(real);
  earlier_.push_back(GrpcAccess::rebind(context_, real));
  lock.lock();
  state_ = State::kReplaying;
  // A cancellation after the check above may have come before the real call was in the context, and
  // so has not cancelled it. A deadline needs no such care, because the real call has it too.
  if (is_cancelled() || (ended_ && absl::IsCancelled(*ended_))) {
    grpc_call_cancel(real_.call(), nullptr);
  }
  replay(std::move(lock));
}

void QueuedCall::replay(std::unique_lock<std::mutex> lock) {
  while (!stored_.empty()) {
    CallOpSetInterface* const ops = stored_.front();
    stored_.pop_front();
    lock.unlock();
    fill(ops);
    lock.lock();
  }
  if (state_ == State::kReplaying) state_ = State::kBound;
}

void QueuedCall::fill(CallOpSetInterface* ops) {
  if (interception_.interceptor != nullptr)
    return interception_.interceptor->fill(ops, &real_, cq_);
  const OpsScope scope(ops, real_, cq_);
  ops->FillOps(&real_);
}

// The context is destroyed. Dropping the last references makes gRPC cancel the holding call. That
// ends its RECV_STATUS (watch_holding_call()), which drops the last reference to this object.
void QueuedCall::context_gone() {
  std::vector<grpc_call*> earlier;
  {
    const std::lock_guard lock(mutex_);
    state_ = State::kGone;
    earlier.swap(earlier_);
  }
  for (grpc_call* const call : earlier)
    grpc_call_unref(call);
}

}  // namespace signalbox::channel
