// SPDX-License-Identifier: Apache-2.0
//
// UnsentCall — makes a unary call again that ended before any transport had it (D2).
//
//   call_observer: UNAVAILABLE, and no peer ─▶ [UnsentCall] ─▶ pick again ─▶ attempt ─▶ the
//                                                application's batch goes on with its outcome
//
// Between the pick and the first batch a connection may die; gRPC then fails the call with
// UNAVAILABLE, or tries to connect anew and fails it then. Proof that such a call was not sent: a
// call learns its peer from the transport that takes it, before anything is written, and this one
// has none. Other refused calls (a transport that closed while it took the call, a GOAWAY) have a
// peer and end as they are: whether the server saw them cannot be told from outside gRPC.
//
// The first call's completion is held back inside the interceptor, an attempt runs as a call of
// serialized messages through the same channel, and its outcome is written where the first call's
// would have been. Only generated unary stubs in one batch qualify: the synchronous API, the
// asynchronous one without ReadInitialMetadata, the callback API with a function.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include "channel/call_binder.hpp"

namespace signalbox::channel {

/// The completion that is held back.
struct UnsentBatch {
  std::shared_ptr<CallBinder> binder;
  grpc::ClientContext* user = nullptr;
  const char* method = nullptr;
  grpc::ByteBuffer* request = nullptr;
  grpc::experimental::InterceptorBatchMethods* batch = nullptr;
  grpc::internal::CallOpSetInterface* ops = nullptr;
  void* reply = nullptr;
};

class UnsentCall final : public grpc::ClientUnaryReactor {
 public:
  /// Null, and `intent` untouched, if the batch is not one of a generated unary stub.
  static std::unique_ptr<UnsentCall> of(const UnsentBatch& unsent, CallIntent& intent);

  ~UnsentCall() override;

  /// Proceeds with the batch in the end; then this may be gone.
  void start();

 private:
  using ReceiveOp = grpc::internal::CallOpRecvMessage<google::protobuf::MessageLite>;

  UnsentCall(const UnsentBatch& unsent, ReceiveOp* receive, CallIntent intent);
  void OnDone(const grpc::Status& status) override;
  void deliver(grpc::Status status);

  const std::shared_ptr<CallBinder> binder_;
  grpc::ClientContext* const user_;
  grpc::experimental::InterceptorBatchMethods* const batch_;
  ReceiveOp* const receive_;
  google::protobuf::MessageLite* const reply_;
  const std::string method_;
  const std::multimap<std::string, std::string> metadata_;
  grpc::GenericStub stub_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  std::optional<CallIntent> intent_;  ///< Of the next attempt, or of the one that was bound.
  std::vector<grpc_call*> earlier_;   ///< The calls that the user's context had before.
  std::vector<std::unique_ptr<grpc::ClientContext>> attempts_;
};

}  // namespace signalbox::channel
