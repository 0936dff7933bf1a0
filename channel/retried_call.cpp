// SPDX-License-Identifier: Apache-2.0
#include "channel/retried_call.hpp"

#include <utility>

#include "absl/strings/str_cat.h"
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
// After the buffers that it needs.
#include <grpcpp/impl/codegen/proto_utils.h>

#include "channel/call_observer.hpp"

namespace signalbox::channel {
namespace {

using google::protobuf::MessageLite;

constexpr char kPreviousAttempts[] = "grpc-previous-rpc-attempts";

}  // namespace

// Casts from the op set to one of its bases.
std::optional<ReplySlot> ReplySlot::of(grpc::internal::CallOpSetInterface* ops, void* reply) {
  ReplySlot slot;
  slot.reply_ = reply;
  if (auto* const message = dynamic_cast<Message*>(ops); message != nullptr) {
    slot.op_ = message;
  } else if (auto* const bytes = dynamic_cast<Bytes*>(ops); bytes != nullptr) {
    slot.op_ = bytes;
  } else {
    return std::nullopt;
  }
  return slot;
}

grpc::Status ReplySlot::fill(grpc::ByteBuffer& response) const {
  if (auto* const* const bytes = std::get_if<Bytes*>(&op_)) {
    static_cast<grpc::ByteBuffer*>(reply_)->Swap(&response);
    (*bytes)->got_message = true;
    return grpc::Status::OK;
  }
  grpc::Status status = grpc::SerializationTraits<MessageLite>::Deserialize(
      &response, static_cast<MessageLite*>(reply_));
  std::get<Message*>(op_)->got_message = status.ok();
  return status;
}

RetriedCall::RetriedCall(HeldBatch held, CallIntent intent)
    : held_(std::move(held)),
      binder_(held_.binder),
      user_(held_.user),
      method_(held_.method),
      metadata_(GrpcAccess::metadata(*user_)),
      stub_(channel_over(binder_)),
      intent_(std::move(intent)) {
  request_.Swap(held_.request);
}

RetriedCall::~RetriedCall() {
  for (grpc_call* const call : earlier_)
    grpc_call_unref(call);
}

void RetriedCall::start(Duration delay) {
  if (delay == Duration::zero()) return attempt();
  const std::lock_guard lock(mutex_);
  back_off_ = BackOff::start(binder_->waiting(), delay, [this] { backed_off(); });
  // Whoever cancelled before that found nothing to cancel.
  if (held_.observer->is_cancelled()) back_off_->cancel();
}

void RetriedCall::cancel() {
  const std::lock_guard lock(mutex_);
  if (back_off_ != nullptr) back_off_->cancel();
}

void RetriedCall::backed_off() {
  {
    const std::lock_guard lock(mutex_);
    back_off_ = nullptr;
  }
  attempt();  // Of a call that was cancelled it is cancelled, too.
}

void RetriedCall::attempt() {
  auto context = std::make_unique<grpc::ClientContext>();
  const std::uint32_t before = intent_->retry.previous_attempts();
  for (const auto& [key, value] : metadata_)
    if (before == 0 || key != kPreviousAttempts) context->AddMetadata(key, value);
  if (before > 0) context->AddMetadata(kPreviousAttempts, absl::StrCat(before));
  GrpcAccess::copy_settings(*user_, *context);
  CallIntent intent = std::move(*intent_);
  intent_.reset();
  intent.attempt = &intent_;
  response_.Clear();
  {
    const AttemptScope scope(std::move(intent));
    stub_.PrepareUnaryCall(
        context.get(), method_, grpc::StubOptions(), &request_, &response_, this);
  }
  // From here cancelling the application's context cancels the attempt.
  grpc_call_ref(context->c_call());
  earlier_.push_back(GrpcAccess::rebind(*user_, context->c_call()));
  if (held_.observer->is_cancelled()) context->TryCancel();
  attempts_.push_back(std::move(context));
  StartCall();
}

// An attempt that was bound, or whose pick failed, has given its intent back.
void RetriedCall::OnDone(const grpc::Status& status) {
  grpc::ClientContext& attempt = *attempts_.back();
  if (intent_) {
    const grpc::StatusCode code = status.error_code();
    if (const CallStats* const stats = CallBinder::stats(*intent_)) stats->count_completed(code);
    const auto delay = binder_->retry(*intent_,
                                      {.call = attempt.c_call(),
                                       .code = code,
                                       .trailers = attempt.GetServerTrailingMetadata(),
                                       .deadline = attempt.raw_deadline(),
                                       .request_bytes = request_.Length(),
                                       .is_wanted = !held_.observer->is_cancelled()});
    if (delay) return start(*delay);
    // Where the application has cancelled it, this attempt may have been nowhere.
    if (!held_.observer->is_cancelled()) set_cookie_ = intent_->pick.set_cookie();
    intent_.reset();
  }
  deliver(status);
}

void RetriedCall::deliver(grpc::Status status) {
  grpc::ClientContext& attempt = *attempts_.back();
  // Where it came to in the end is what peer() is to say.
  grpc_call_ref(attempt.c_call());
  earlier_.push_back(GrpcAccess::rebind(*user_, attempt.c_call()));
  for (const auto& header : attempt.GetServerInitialMetadata())
    held_.batch->GetRecvInitialMetadata()->insert(header);
  auto& trailers = *held_.batch->GetRecvTrailingMetadata();
  trailers.clear();
  for (const auto& trailer : attempt.GetServerTrailingMetadata())
    trailers.insert(trailer);
  deliver_cookie(set_cookie_, attempt.c_call(), *held_.batch);
  if (status.ok()) status = held_.reply.fill(response_);
  *held_.batch->GetRecvStatus() = std::move(status);
  held_.batch->Proceed();
}

}  // namespace signalbox::channel
