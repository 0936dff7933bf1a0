// SPDX-License-Identifier: Apache-2.0
#include "channel/unsent_call.hpp"

#include <utility>

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
// After the buffers that it needs.
#include <grpcpp/impl/codegen/proto_utils.h>

#include "actors/io/grpc_connector.hpp"

namespace signalbox::channel {

using google::protobuf::MessageLite;

std::unique_ptr<UnsentCall> UnsentCall::of(const UnsentBatch& unsent, CallIntent& intent) {
  // A cast from the op set to one of its bases: generated stubs receive into a MessageLite.
  auto* const receive = dynamic_cast<ReceiveOp*>(unsent.ops);
  if (receive == nullptr) return nullptr;
  return std::unique_ptr<UnsentCall>(new UnsentCall(unsent, receive, std::move(intent)));
}

UnsentCall::UnsentCall(const UnsentBatch& unsent, ReceiveOp* receive, CallIntent intent)
    : binder_(unsent.binder),
      user_(unsent.user),
      batch_(unsent.batch),
      receive_(receive),
      reply_(static_cast<MessageLite*>(unsent.reply)),
      method_(unsent.method),
      metadata_(GrpcAccess::metadata(*unsent.user)),
      stub_(channel_over(unsent.binder)),
      intent_(std::move(intent)) {
  request_.Swap(unsent.request);
}

UnsentCall::~UnsentCall() {
  for (grpc_call* const call : earlier_)
    grpc_call_unref(call);
}

void UnsentCall::start() {
  binder_->counts().count_repicked();
  auto context = std::make_unique<grpc::ClientContext>();
  for (const auto& [key, value] : metadata_)
    context->AddMetadata(key, value);
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
  // Cancelling the application's context cancels the attempt. One that was cancelled in the few
  // instructions since the first call ended is not; gRPC promises no more.
  grpc_call_ref(context->c_call());
  earlier_.push_back(GrpcAccess::rebind(*user_, context->c_call()));
  attempts_.push_back(std::move(context));
  StartCall();
}

// An attempt that was bound has given its intent back.
void UnsentCall::OnDone(const grpc::Status& status) {
  if (intent_) {
    const lb::ClusterRef* const cluster = intent_->pick.cluster();
    if (cluster != nullptr) cluster->stats().count_completed(status.error_code());
    const bool unsent = status.error_code() == grpc::StatusCode::UNAVAILABLE &&
                        actors::never_reached_transport(attempts_.back()->c_call());
    if (unsent) return start();
    intent_->pick.end(status.error_code());
    intent_.reset();
  }
  deliver(status);
}

void UnsentCall::deliver(grpc::Status status) {
  grpc::ClientContext& attempt = *attempts_.back();
  // Where it came to in the end is what peer() is to say.
  grpc_call_ref(attempt.c_call());
  earlier_.push_back(GrpcAccess::rebind(*user_, attempt.c_call()));
  for (const auto& header : attempt.GetServerInitialMetadata())
    batch_->GetRecvInitialMetadata()->insert(header);
  for (const auto& trailer : attempt.GetServerTrailingMetadata())
    batch_->GetRecvTrailingMetadata()->insert(trailer);
  if (status.ok()) {
    status = grpc::SerializationTraits<MessageLite>::Deserialize(&response_, reply_);
    receive_->got_message = status.ok();
  }
  *batch_->GetRecvStatus() = std::move(status);
  batch_->Proceed();
}

}  // namespace signalbox::channel
