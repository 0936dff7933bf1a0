// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/retried_call.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include <google/protobuf/message_lite.h>
#include <grpcpp/impl/codegen/interceptor_common.h>

#include "actors/io/lost_connection.hpp"
#include "channel/grpc/ops_scope.hpp"
#include "messages/invariant.hpp"

namespace signalbox::channel {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::internal::Call;
using grpc::internal::CallOpClientRecvStatus;
using grpc::internal::CallOpClientSendClose;
using grpc::internal::CallOpGenericRecvMessage;
using grpc::internal::CallOpRecvInitialMetadata;
using grpc::internal::CallOpSendInitialMetadata;
using grpc::internal::CallOpSendMessage;
using grpc::internal::CallOpSetInterface;
using grpc::internal::InterceptorBatchMethodsImpl;

constexpr char kPreviousAttempts[] = "grpc-previous-rpc-attempts";

void start(grpc_call* call, const grpc_op* ops, std::size_t count, void* tag) {
  const grpc_call_error error = grpc_call_start_batch(call, ops, count, tag, nullptr);
  SIGNALBOX_INVARIANT(error == GRPC_CALL_OK, "a call takes the batches of a retry");
}

// Completes the batch, which receives the headers, as failed. A reactor takes that for a response
// without headers. FinalizeResult() runs the interceptors, which continue the batch.
void fail(CallOpSetInterface* ops) {
  void* tag = nullptr;
  bool ok = false;
  ops->FinalizeResult(&tag, &ok);
}

// The context already has the headers, so the batch must not receive them again.
void have_headers(CallOpSetInterface* ops) {
  if (auto* const op = dynamic_cast<CallOpRecvInitialMetadata*>(ops); op != nullptr)
    *op = CallOpRecvInitialMetadata();
}

// Fills the batches into `call`. The caller has one hold on the completion queue (see OpsScope) for
// each batch. OpsScope releases the caller's hold when the batch has a hold of its own.
void fill_stored(const std::vector<CallOpSetInterface*>& stored, Call call) {
  for (CallOpSetInterface* const ops : stored) {
    const OpsScope scope(ops, call, call.cq());
    ops->FillOps(&call);
  }
}

// The reply of a batch. gRPC's batch forgets the type of its message when it completes, so it could
// not receive the reply of a later attempt. Therefore the batch receives bytes instead, and make()
// parses the bytes into the message at the end.
class Reply final : private CallOpGenericRecvMessage {
 public:
  explicit Reply(CallOpGenericRecvMessage& op) : CallOpGenericRecvMessage(std::move(op)) {
    arm(op);
  }

  void arm(CallOpGenericRecvMessage& op) { op.RecvMessage(&bytes_); }

  /// Makes the message. Precondition: the bytes have come. False: the message cannot be parsed.
  bool make() {
    grpc_op op{};
    std::size_t count = 0;
    AddOp(&op, &count);
    std::vector<grpc::Slice> slices;
    bool is_made = bytes_.Dump(&slices).ok();
    std::vector<grpc_slice> parts;
    parts.reserve(slices.size());
    for (const grpc::Slice& slice : slices)
      parts.push_back(slice.c_slice());
    *op.data.recv_message.recv_message = grpc_raw_byte_buffer_create(parts.data(), parts.size());
    for (const grpc_slice& part : parts)
      grpc_slice_unref(part);
    FinishOp(&is_made);
    return is_made;
  }

 private:
  grpc::ByteBuffer bytes_;
};

}  // namespace

// A batch, from its first visit of the innermost interceptor until the interceptor has continued it
// for the last time.
struct RetriedCall::Batch {
  enum class Where {
    kOut,       ///< The batch's operations run.
    kHeld,      ///< The batch's operations have ended, and the application does not know this yet.
    kCarrying,  ///< As kHeld, and operations of RetriedCall run with the batch's tag.
    kRepeated,  ///< RetriedCall makes the batch complete again, with success.
    kRefilled,  ///< The batch passes the interceptors on its way into the next attempt.
    kFailing,   ///< RetriedCall makes the batch complete again, as failed.
  };

  Methods* methods = nullptr;
  CallOpSetInterface* ops = nullptr;
  /// The call into which the batch was filled, and to which it has a reference.
  grpc_call* call = nullptr;
  Where where = Where::kOut;
  bool is_sent = false;  ///< The batch sends a message.
  bool has_headers = false;
  bool has_message = false;
  grpc::Status* status = nullptr;
  std::unique_ptr<Reply> reply;
};

// The status with which an attempt ended, and the operation that asks for the status.
struct RetriedCall::End : CallOpClientRecvStatus {
  using CallOpClientRecvStatus::AddOp;
  using CallOpClientRecvStatus::FinishOp;

  grpc::Status status;
  bool is_asked = false;
};

struct RetriedCall::Sends : CallOpSendInitialMetadata, CallOpSendMessage, CallOpClientSendClose {
  ~Sends() {
    bool ok = true;
    CallOpSendInitialMetadata::FinishOp(&ok);
  }

  std::size_t add(grpc_op* ops) {
    std::size_t count = 0;
    CallOpSendInitialMetadata::AddOp(ops, &count);
    CallOpSendMessage::AddOp(ops, &count);
    CallOpClientSendClose::AddOp(ops, &count);
    return count;
  }
};

// A batch without operations of the application. QueuedCall gets it for the next attempt, and fills
// it when that attempt has its call. FillOps() then does not start operations of this batch, but
// calls RetriedCall::replay(), which sends the kept data again on the new call.
class RetriedCall::Replay final : public CallOpSetInterface {
 public:
  explicit Replay(RetriedCall& retried) : retried_(retried) {}

  // The hold on the queue that QueuedCall took for this batch is not needed, because the held
  // batches have holds of their own. It is released first: once replay() has started an operation,
  // these batches may end, and the application may destroy the queue.
  void FillOps(Call* call) override {
    release_held_queue();
    retried_.replay(*call);
  }

  // This batch never completes, because its operations have the tags of other batches.
  bool FinalizeResult(void**, bool*) override { return false; }

  void* core_cq_tag() override { return nullptr; }

  void SetHijackingState() override {}

  void ContinueFillOpsAfterInterception() override {}

  void ContinueFinalizeResultAfterInterception() override {}

 private:
  RetriedCall& retried_;
};

// The batch can be used for another attempt if it receives everything: headers, reply and status.
// gRPC's stubs receive the reply into a MessageLite or a ByteBuffer, which live until the call has
// ended.
bool UnaryBatch::is_whole(grpc::experimental::InterceptorBatchMethods& batch) const {
  if (!receives || ops == nullptr) return false;
  if (!has(batch, InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) return false;
  using Message = grpc::internal::CallOpRecvMessage<google::protobuf::MessageLite>;
  using Bytes = grpc::internal::CallOpRecvMessage<grpc::ByteBuffer>;
  return dynamic_cast<Message*>(ops) != nullptr || dynamic_cast<Bytes*>(ops) != nullptr;
}

RetriedCall::RetriedCall(Attempts& attempts, AttemptedCall& owner, int entering)
    : attempts_(attempts),
      owner_(owner),
      context_(attempts.context()),
      replay_(std::make_unique<Replay>(*this)),
      entering_(entering) {}

RetriedCall::~RetriedCall() {
  if (refused_ != nullptr) grpc_call_unref(refused_);
}

void RetriedCall::cancel() {
  const Lock lock(mutex_);
  if (back_off_ != nullptr) back_off_->cancel();
}

std::optional<std::size_t> RetriedCall::kept_bytes() {
  const Lock lock(mutex_);
  return is_large_ ? std::nullopt : std::optional(log_bytes_);
}

bool RetriedCall::is_observed() {
  const Lock lock(mutex_);
  return !is_blind_;
}

void RetriedCall::take_over(UnaryBatch& unary, Methods& methods, Duration delay) {
  Lock lock(mutex_);
  current_ = unary.call;
  Batch& batch = batches_.emplace_back();
  batch.methods = &methods;
  batch.ops = unary.ops;
  batch.call = unary.call.call();
  batch.where = Batch::Where::kHeld;
  batch.has_headers = true;
  batch.has_message = true;
  batch.status = methods.GetRecvStatus();
  has_begun_ = true;
  is_closed_ = true;
  log_bytes_ = unary.request.Length();
  log_.emplace_back().Swap(&unary.request);
  follow(std::move(lock), delay);
}

// --- batches --------------------------------------------------------------------

void RetriedCall::fill(CallOpSetInterface* ops, const Call& call, grpc::CompletionQueue* held) {
  Call target = call;
  if (ops != replay_.get()) {
    Lock lock(mutex_, std::defer_lock);
    if (!is_quiet_) lock.lock();
    if (state_ == State::kEnding || state_ == State::kAgain) {
      if (held == nullptr) GrpcAccess::hold_cq(call.cq());
      stored_.push_back(ops);
      return;
    }
    if (state_ == State::kOpen) ++entering_;
    if (are_ours_) have_headers(ops);
    if (current_.call() == nullptr) current_ = call;
    target = current_;
  }
  const OpsScope scope(ops, target, held);
  ops->FillOps(&target);
}

bool RetriedCall::intercept(Methods& methods) {
  if (is_quiet_) return false;
  Lock lock(mutex_);
  if (Batch* const batch = find(methods)) return come_back(std::move(lock), *batch);
  return state_ != State::kSettled && go_out(std::move(lock), methods);
}

bool RetriedCall::go_out(Lock lock, Methods& methods) {
  if (entering_ > 0) --entering_;
  const FilledOps filled = filled_ops();
  if (current_.call() == nullptr && filled.is_of(context_.c_call())) current_ = *filled.call;
  if (state_ == State::kOpen && has_begun_) record_transport();
  is_blind_ = current_.call() == nullptr || !filled.is_of(current_.call());
  if (!is_blind_) remember(methods, filled.ops);
  if (is_blind_ || (is_large_ && state_ == State::kOpen)) settle(std::move(lock));
  return false;
}

// Records whether the attempt has reached a transport. gRPC is asked early, after batches that
// succeeded: when a batch fails, gRPC cancels the call, and no longer says which transport it had.
void RetriedCall::record_transport() {
  if (was_taken_ || current_.call() == nullptr) return;
  was_taken_ = !actors::has_no_transport(current_.call());
}

void RetriedCall::remember(Methods& methods, CallOpSetInterface* ops) {
  Batch& batch = batches_.emplace_back();
  batch.methods = &methods;
  batch.ops = ops;
  batch.call = current_.call();
  const bool begins = has(methods, InterceptionHookPoints::PRE_SEND_INITIAL_METADATA);
  has_begun_ |= begins;
  is_closed_ |= has(methods, InterceptionHookPoints::PRE_SEND_CLOSE);
  if (has(methods, InterceptionHookPoints::PRE_SEND_MESSAGE)) {
    batch.is_sent = true;
    // The headers and the message are one batch. If it fails, the headers may still have reached
    // the server, and may have started its handler.
    was_taken_ = was_taken_ || (begins && attempts_.headers_begin_it());
    log_.push_back(*methods.GetSerializedSendMessage());
    log_bytes_ += log_.back().Length();
    is_large_ = log_bytes_ > attempts_.most_kept();
    if (is_large_) log_.clear();
  }
  auto* const op = dynamic_cast<CallOpGenericRecvMessage*>(ops);
  if (op != nullptr && methods.GetRecvMessage() != nullptr)
    batch.reply = std::make_unique<Reply>(*op);
}

bool RetriedCall::come_back(Lock lock, Batch& batch) {
  switch (batch.where) {
    case Batch::Where::kOut:
      return judge(std::move(lock), batch);
    case Batch::Where::kCarrying:
      batch.where = Batch::Where::kHeld;
      stepped(std::move(lock));
      return true;
    case Batch::Where::kRefilled:
      batch.where = Batch::Where::kOut;
      return false;
    case Batch::Where::kRepeated:
    case Batch::Where::kFailing:
      tell_sent(batch);
      forget(batch);
      return false;
    case Batch::Where::kHeld:
      break;
  }
  SIGNALBOX_INVARIANT(false, "no interceptor sees a held batch");
}

// The batch's operations have ended: decides what follows. Returns true if the batch is continued
// later or already was.
bool RetriedCall::judge(Lock lock, Batch& batch) {
  Methods& methods = *batch.methods;
  batch.has_headers = has(methods, InterceptionHookPoints::POST_RECV_INITIAL_METADATA);
  batch.has_message = has(methods, InterceptionHookPoints::POST_RECV_MESSAGE);
  const bool has_status = has(methods, InterceptionHookPoints::POST_RECV_STATUS);
  batch.status = has_status ? methods.GetRecvStatus() : nullptr;
  has_headers_ |= batch.has_headers;
  was_taken_ = was_taken_ || (batch.is_sent && methods.GetSendMessageStatus());
  const bool receives = batch.has_headers || batch.has_message || has_status;
  const bool has_come = batch.has_message && methods.GetRecvMessage() != nullptr;
  if (has_come && batch.reply != nullptr && !batch.reply->make() && has_status)
    *batch.status = {grpc::StatusCode::INTERNAL, "Unable to parse the response"};

  if (state_ == State::kSettled && is_without_headers(batch)) {
    batch.where = Batch::Where::kFailing;
    CallOpSetInterface* const ops = batch.ops;
    lock.unlock();
    fail(ops);
    return true;
  }
  if (state_ == State::kSettled) {
    tell_sent(batch);
    forget(batch);
    return false;
  }
  if (has_come || (has_status && batch.status->ok()) || (receives && is_answered())) {
    tell_sent(batch);
    forget(batch);
    settle(std::move(lock));
    return false;
  }
  if (receives || (batch.is_sent && !methods.GetSendMessageStatus())) {
    batch.where = Batch::Where::kHeld;
    state_ = State::kEnding;
    if (has_status) {
      end_ = std::make_unique<End>();
      end_->status = *batch.status;
    }
    advance(std::move(lock));
    return true;
  }
  // The application gets the batch's outcome in two cases: the batch has sent its message, or the
  // call is cancelled, and so is not made again.
  if (batch.is_sent || attempts_.is_cancelled()) {
    tell_sent(batch);
    forget(batch);
    advance(std::move(lock));
    return false;
  }
  // The batch sent only headers or the end of the messages, and does not tell whether the attempt
  // has ended. Its data is kept for the next attempt, so the batch ends with success.
  batch.where = Batch::Where::kRepeated;
  grpc_call* const call = batch.call;
  void* const tag = batch.ops->core_cq_tag();
  advance(std::move(lock));
  start(call, nullptr, 0, tag);
  return true;
}

// Shows the hook point POST_SEND_MESSAGE to the interceptors. gRPC leaves it out when a message was
// serialized before it was sent. GetSerializedSendMessage() in remember() has done that.
void RetriedCall::tell_sent(const Batch& batch) {
  if (!batch.is_sent) return;
  static_cast<InterceptorBatchMethodsImpl*>(batch.methods)
      ->AddInterceptionHookPoint(InterceptionHookPoints::POST_SEND_MESSAGE);
}

// Whether the current attempt has received response headers.
bool RetriedCall::is_answered() {
  return attempts_.has_connection() && GrpcAccess::has_headers(context_);
}

// Whether this batch must tell a reactor that the response has no headers (S3 of retried_call.hpp):
// the batch receives the headers, for the callback API, and there are none.
bool RetriedCall::is_without_headers(const Batch& batch) {
  const bool may_tell = batch.has_headers && batch.status == nullptr;
  return may_tell && attempts_.is_callback(current_) && !GrpcAccess::has_headers(context_);
}

RetriedCall::Batch* RetriedCall::find(const Methods& methods) {
  for (Batch& batch : batches_)
    if (batch.methods == &methods) return &batch;
  return nullptr;
}

void RetriedCall::forget(const Batch& batch) {
  batches_.remove_if([&](const Batch& other) { return &other == &batch; });
  rest();
}

void RetriedCall::rest() {
  is_quiet_ = state_ == State::kSettled && batches_.empty() && !are_ours_;
}

// --- the end of an attempt --------------------------------------------------------

// Settles the call: no further attempt follows. Held batches are passed on to the application, and
// stored batches are filled into the last attempt's call, or into `refused_` if there is one.
void RetriedCall::settle(Lock lock) {
  state_ = State::kSettled;
  log_.clear();
  std::vector<Methods*> held;
  std::vector<CallOpSetInterface*> failing;
  for (Batch& batch : batches_) {
    if (batch.where != Batch::Where::kHeld) continue;
    if (is_without_headers(batch)) {
      batch.where = Batch::Where::kFailing;
      failing.push_back(batch.ops);
      continue;
    }
    tell_sent(batch);
    attempts_.deliver_cookie(*batch.methods);
    if (batch.status != nullptr) attempts_.call_ended(*batch.status);
    held.push_back(batch.methods);
  }
  batches_.remove_if([](const Batch& batch) { return batch.where == Batch::Where::kHeld; });
  const auto stored = std::exchange(stored_, {});
  for (CallOpSetInterface* const ops : stored)
    if (are_ours_) have_headers(ops);
  const Call call = current_;
  rest();
  lock.unlock();
  for (CallOpSetInterface* const ops : failing)
    fail(ops);
  for (Methods* const methods : held)
    methods->Proceed();
  fill_stored(stored, call);
}

// The attempt is ending. Does nothing until all of its batches have come back to this object (S1 of
// retried_call.hpp). Then decides what follows, after asking for the attempt's status if no batch
// had it.
void RetriedCall::advance(Lock lock) {
  if (state_ != State::kEnding || entering_ > 0) return;
  for (const Batch& batch : batches_) {
    const auto where = batch.where;
    if (where != Batch::Where::kHeld && where != Batch::Where::kRepeated) return;
  }
  if (end_ != nullptr) return decide(std::move(lock));
  ask(std::move(lock));
}

// Asks gRPC for the attempt's status, which no batch of the application has received. If no batch
// has received the headers either, asks for the headers first. The headers show whether the server
// has responded. If it has, the call is settled instead, because the status of such a call would
// come only after all messages.
void RetriedCall::ask(Lock lock) {
  grpc_op op{};
  if (!has_headers_) {
    op.op = GRPC_OP_RECV_INITIAL_METADATA;
    op.data.recv_initial_metadata.recv_initial_metadata =
        GrpcAccess::received_headers(context_).arr();
    return carry(std::move(lock), Step::kHeaders, &op, 1);
  }
  std::size_t count = 0;
  end_ = std::make_unique<End>();
  end_->is_asked = true;
  end_->ClientRecvStatus(&context_, &end_->status);
  end_->AddOp(&op, &count);
  carry(std::move(lock), Step::kStatus, &op, count);
}

// The operations that were started with the carrier's tag (carry()) are done. Goes on with the step
// that follows `step_`.
void RetriedCall::stepped(Lock lock) {
  bool ok = true;
  switch (step_) {
    case Step::kHeaders:
      has_headers_ = true;
      are_ours_ = is_answered();
      if (!are_ours_) return ask(std::move(lock));
      attempts_.add_cookie_to_headers();
      return settle(std::move(lock));
    case Step::kStatus:
      end_->FinishOp(&ok);
      return decide(std::move(lock));
    case Step::kReplay:
      record_transport();
      return send_next(std::move(lock));
  }
}

void RetriedCall::decide(Lock lock) {
  const auto kept = is_large_ ? std::nullopt : std::optional(log_bytes_);
  const auto delay = attempts_.ended(end_->status, kept, /*is_wanted=*/true, was_taken_);
  if (!delay) {
    for (const Batch& batch : batches_)
      if (batch.status != nullptr) *batch.status = end_->status;
    // A call's status can be received only once, and this class has received it. So the
    // application's remaining batches run on another call that ends with the same status. The
    // context has the trailers, and with them the status's details.
    if (end_->is_asked) {
      refused_ = attempts_.refuse(end_->status, *current_.cq());
      current_ = Call(refused_, &owner_.filler(), current_.cq(), current_.client_rpc_info());
    }
    return settle(std::move(lock));
  }
  follow(std::move(lock), *delay);
}

// --- the next attempt -------------------------------------------------------------

void RetriedCall::follow(Lock lock, Duration delay) {
  state_ = State::kAgain;
  if (delay > Duration::zero()) {
    back_off_ = attempts_.back_off(delay, [self = shared_from_this()] { self->again(); });
    // A cancellation by another thread may have come before back_off_ was set, and so has not ended
    // the back-off. So the back-off is ended here.
    if (attempts_.is_cancelled()) back_off_->cancel();
    return;
  }
  lock.unlock();
  again();
}

void RetriedCall::again() {
  Lock lock(mutex_);
  back_off_ = nullptr;
  end_ = nullptr;
  has_headers_ = false;
  was_taken_ = false;
  GrpcAccess::received_headers(context_).Reset();
  GrpcAccess::received_trailers(context_).Reset();
  const Call last = current_;
  lock.unlock();
  attempts_.make_again(last, owner_, *replay_);  // After a cancellation, the new call is cancelled.
}

// Sends the kept data again, on the call that queued_call has made.
void RetriedCall::replay(const Call& call) {
  Lock lock(mutex_);
  current_ = call;
  next_ = 0;
  sends_headers_ = has_begun_;
  sends_close_ = is_closed_;
  if (has_begun_) attempts_.count_started();
  headers_ = GrpcAccess::metadata(context_);
  if (const std::uint32_t before = attempts_.previous_attempts(); before > 0) {
    headers_.erase(kPreviousAttempts);
    headers_.emplace(kPreviousAttempts, absl::StrCat(before));
  }
  send_next(std::move(lock));
}

void RetriedCall::send_next(Lock lock) {
  sends_ = std::make_unique<Sends>();
  if (std::exchange(sends_headers_, false)) {
    // The headers are a batch of their own. If it fails, the headers have failed, and no server has
    // seen anything of the attempt (was_taken_).
    sends_->SendInitialMetadata(&headers_, 0);
  } else if (next_ < log_.size()) {
    const grpc::Status copied = sends_->SendMessage(log_[next_++]);
    SIGNALBOX_INVARIANT(copied.ok(), "bytes are serialized already");
    if (next_ == log_.size() && std::exchange(sends_close_, false)) sends_->ClientSendClose();
  } else if (std::exchange(sends_close_, false)) {
    sends_->ClientSendClose();
  }
  std::array<grpc_op, 3> ops{};
  const std::size_t count = sends_->add(ops.data());
  if (count == 0) return refill(std::move(lock));
  carry(std::move(lock), Step::kReplay, ops.data(), count);
}

// The new call has sent all that the call before it had sent. Fills the held and the stored batches
// into the new call.
void RetriedCall::refill(Lock lock) {
  struct Refilled {
    CallOpSetInterface* ops;
    grpc_call* before;
  };

  std::vector<Refilled> refilled;
  std::vector<Refilled> sent;
  for (Batch& batch : batches_) {
    if (batch.where != Batch::Where::kHeld) continue;
    rearm(batch);
    if (batch.has_headers || batch.has_message || batch.status != nullptr) {
      refilled.push_back({batch.ops, std::exchange(batch.call, current_.call())});
      batch.where = Batch::Where::kRefilled;
    } else {
      sent.push_back({batch.ops, batch.call});
      batch.where = Batch::Where::kRepeated;
    }
  }
  state_ = State::kOpen;
  sends_ = nullptr;
  const auto stored = std::exchange(stored_, {});
  entering_ += static_cast<int>(stored.size());
  const Call call = current_;
  lock.unlock();
  for (const Refilled& batch : sent)
    start(batch.before, nullptr, 0, batch.ops->core_cq_tag());
  for (const Refilled& batch : refilled) {
    // Filling takes a hold on the queue and a reference to the new call. The hold and the reference
    // of the batch's earlier filling are released.
    fill_stored({batch.ops}, call);
    grpc_call_unref(batch.before);
  }
  fill_stored(stored, call);
}

void RetriedCall::rearm(Batch& batch) {
  // A failed operation would report its failure again, so the operations are replaced by new ones.
  if (batch.is_sent) *dynamic_cast<CallOpSendMessage*>(batch.ops) = CallOpSendMessage();
  if (batch.has_headers) {
    auto* const op = dynamic_cast<CallOpRecvInitialMetadata*>(batch.ops);
    *op = CallOpRecvInitialMetadata();
    op->RecvInitialMetadata(&context_);
  }
  if (batch.status != nullptr) {
    auto* const op = dynamic_cast<CallOpClientRecvStatus*>(batch.ops);
    *op = CallOpClientRecvStatus();
    op->ClientRecvStatus(&context_, batch.status);
  }
  if (batch.reply != nullptr) batch.reply->arm(*dynamic_cast<CallOpGenericRecvMessage*>(batch.ops));
}

// Starts operations of RetriedCall on the current call, with the tag of a held batch (the carrier),
// so that their completion comes to intercept(). `step` says what the operations are for.
void RetriedCall::carry(Lock lock, Step step, const grpc_op* ops, std::size_t count) {
  const auto carrier = std::find_if(batches_.begin(), batches_.end(), [](const Batch& batch) {
    return batch.where == Batch::Where::kHeld;
  });
  SIGNALBOX_INVARIANT(carrier != batches_.end(), "an attempt ends with a batch that is held");
  carrier->where = Batch::Where::kCarrying;
  step_ = step;
  grpc_call* const call = current_.call();
  void* const tag = carrier->ops->core_cq_tag();
  lock.unlock();
  start(call, ops, count, tag);
}

}  // namespace signalbox::channel
