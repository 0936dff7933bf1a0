// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/calls.hpp"

#include <string>
#include <utility>

namespace signalbox::stress {

void CallBody::begin(const std::shared_ptr<CallBody>& self) {
  means_.ledger.begin(plan);
  context.set_deadline(std::chrono::system_clock::now() + plan.deadline);
  context.set_wait_for_ready(plan.wait_for_ready);
  context.AddMetadata("call", std::to_string(plan.id));
  if (plan.cancel_first) context.TryCancel();
  if (!plan.cancel_after) return;
  means_.canceller.cancel_at(
      Clock::now() + *plan.cancel_after, {self, &self->context}, plan.outlive);
}

void CallBody::got(const Reply& reply) {
  ++replies_;
  wrong_ |= reply.text() != plan.request().text();
}

void CallBody::end(const grpc::Status& status) {
  const std::string origin = status.ok() ? "" : context.debug_error_string();
  means_.ledger.end(plan, status, is_whole(), origin);
}

bool CallBody::is_whole() const {
  if (wrong_) return false;
  switch (plan.shape) {
    case Shape::kUnary:
      return replies_ == 1;
    case Shape::kCollect:
      return replies_ == 1 && written == plan.messages;
    case Shape::kFeed:
      return replies_ == plan.messages;
    case Shape::kChat:
      return replies_ == plan.messages && written == plan.messages;
  }
  return false;
}

grpc::ByteBuffer to_wire(const Request& request) {
  const grpc::Slice slice(request.SerializeAsString());
  return {&slice, 1};
}

Reply from_wire(const grpc::ByteBuffer& bytes) {
  Reply reply;
  grpc::Slice slice;
  if (bytes.DumpToSingleSlice(&slice).ok())
    reply.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  return reply;
}

}  // namespace signalbox::stress
