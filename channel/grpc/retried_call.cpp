// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/retried_call.hpp"

#include <utility>

#include "absl/strings/str_cat.h"
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
// proto_utils.h needs the buffers above.
#include <grpcpp/impl/codegen/proto_utils.h>

#include "channel/grpc/call_observer.hpp"
#include "messages/invariant.hpp"

namespace signalbox::channel {
namespace {

using google::protobuf::MessageLite;

using grpc::experimental::InterceptionHookPoints;
using grpc::internal::Call;
using grpc::internal::InterceptorBatchMethodsImpl;
using grpc::internal::RpcMethod;

constexpr char kPreviousAttempts[] = "grpc-previous-rpc-attempts";

std::vector<InterceptionHookPoints> hooks_of(grpc::experimental::InterceptorBatchMethods& batch) {
  std::vector<InterceptionHookPoints> hooks;
  for (int i = 0; i < static_cast<int>(InterceptionHookPoints::NUM_INTERCEPTION_HOOKS); ++i) {
    const auto hook = static_cast<InterceptionHookPoints>(i);
    if (batch.QueryInterceptionHookPoint(hook)) hooks.push_back(hook);
  }
  return hooks;
}

}  // namespace

struct RetriedCall::Attempt {
  using Ops = grpc::internal::CallOpSet<grpc::internal::CallOpSendInitialMetadata,
                                        grpc::internal::CallOpSendMessage,
                                        grpc::internal::CallOpClientSendClose,
                                        grpc::internal::CallOpRecvInitialMetadata,
                                        grpc::internal::CallOpRecvMessage<grpc::ByteBuffer>,
                                        grpc::internal::CallOpClientRecvStatus>;

  grpc::ClientContext context;
  Ops ops;
  grpc::ByteBuffer response;
  grpc::Status status;
};

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

// The first attempt had no reply, so gRPC's synchronous API and the interceptors have not seen one.
grpc::Status ReplySlot::fill(grpc::ByteBuffer& response, InterceptorBatchMethodsImpl& batch) const {
  if (auto* const* const bytes = std::get_if<Bytes*>(&op_)) {
    static_cast<grpc::ByteBuffer*>(reply_)->Swap(&response);
    (*bytes)->got_message = true;
  } else {
    grpc::Status parsed = grpc::SerializationTraits<MessageLite>::Deserialize(
        &response, static_cast<MessageLite*>(reply_));
    if (!parsed.ok()) return parsed;
    std::get<Message*>(op_)->got_message = true;
  }
  batch.SetRecvMessage(reply_, nullptr);
  return grpc::Status::OK;
}

RetriedCall::RetriedCall(HeldBatch held, CallIntent intent)
    : held_(std::move(held)),
      binder_(held_.binder),
      user_(held_.user),
      method_(held_.method),
      metadata_(GrpcAccess::metadata(*user_)),
      channel_(channel_over(binder_)),
      hooks_(hooks_of(*held_.batch)),
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
  // An earlier cancellation found no back-off to cancel.
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
  attempt();  // If the call was cancelled, the attempt is cancelled, too.
}

void RetriedCall::attempt() {
  Attempt& attempt = *attempts_.emplace_back(std::make_unique<Attempt>());
  grpc::ClientContext& context = attempt.context;
  const std::uint32_t before = intent_->retry.previous_attempts();
  for (const auto& [key, value] : metadata_)
    if (before == 0 || key != kPreviousAttempts) context.AddMetadata(key, value);
  if (before > 0) context.AddMetadata(kPreviousAttempts, absl::StrCat(before));
  GrpcAccess::copy_settings(*user_, context);
  CallIntent intent = std::move(*intent_);
  intent_.reset();
  intent.attempt = &intent_;
  Call call;
  {
    const AttemptScope scope(std::move(intent));
    const RpcMethod method(method_.c_str(), RpcMethod::NORMAL_RPC);
    call = GrpcAccess::create_call(*channel_, method, context, *held_.cq);
  }
  // From here on, cancelling the application's context cancels the attempt.
  grpc_call_ref(context.c_call());
  earlier_.push_back(GrpcAccess::rebind(*user_, context.c_call()));
  if (held_.observer->is_cancelled()) context.TryCancel();
  Attempt::Ops& ops = attempt.ops;
  ops.SendInitialMetadata(&GrpcAccess::metadata(context), 0);
  const grpc::Status copied = ops.SendMessage(request_);
  SIGNALBOX_INVARIANT(copied.ok(), "bytes are serialized already");
  ops.ClientSendClose();
  ops.RecvInitialMetadata(&context);
  ops.RecvMessage(&attempt.response);
  ops.AllowNoMessage();
  ops.ClientRecvStatus(&context, &attempt.status);
  ops.set_core_cq_tag(held_.ops->core_cq_tag());
  call.PerformOps(&ops);  // This may be destroyed afterwards.
}

// An attempt that was bound, or had a failed pick, has returned its intent.
void RetriedCall::attempt_ended() {
  Attempt& attempt = *attempts_.back();
  void* tag = nullptr;
  bool ok = true;
  attempt.ops.FinalizeResult(&tag, &ok);
  if (intent_) {
    const grpc::StatusCode code = attempt.status.error_code();
    if (const CallStats* const stats = CallBinder::stats(*intent_)) stats->count_completed(code);
    const auto delay = binder_->retry(*intent_,
                                      {.context = attempt.context,
                                       .status = attempt.status,
                                       .request_bytes = request_.Length(),
                                       .is_wanted = !held_.observer->is_cancelled()});
    if (delay) return start(*delay);
    // After a cancellation this attempt may have reached no endpoint.
    if (!held_.observer->is_cancelled()) set_cookie_ = intent_->pick.set_cookie();
    intent_.reset();
  }
  deliver(attempt);
}

void RetriedCall::deliver(Attempt& last) {
  grpc::ClientContext& context = last.context;
  // peer() must name the last attempt's endpoint.
  grpc_call_ref(context.c_call());
  earlier_.push_back(GrpcAccess::rebind(*user_, context.c_call()));
  for (const auto& header : context.GetServerInitialMetadata())
    held_.batch->GetRecvInitialMetadata()->insert(header);
  auto& trailers = *held_.batch->GetRecvTrailingMetadata();
  trailers.clear();
  for (const auto& trailer : context.GetServerTrailingMetadata())
    trailers.insert(trailer);
  auto& batch = static_cast<InterceptorBatchMethodsImpl&>(*held_.batch);
  for (const InterceptionHookPoints hook : hooks_)
    batch.AddInterceptionHookPoint(hook);
  deliver_cookie(set_cookie_, context, *held_.batch);
  if (last.status.ok()) last.status = held_.reply.fill(last.response, batch);
  *held_.batch->GetRecvStatus() = std::move(last.status);
  held_.batch->Proceed();
}

}  // namespace signalbox::channel
