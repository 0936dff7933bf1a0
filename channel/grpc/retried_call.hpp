// SPDX-License-Identifier: Apache-2.0
//
// RetriedCall — makes a unary call again: one that no server has looked at (D2), at once,
// and one that its route's retry policy covers, after a back-off (gRFCs A6, A44).
//
//   call_observer: the first attempt failed ─▶ CallBinder::retry ─▶ [RetriedCall] ─┬▶ pick again
//        the application's batch goes on with the last attempt's outcome ◀─────────┘  ▲
//                                                  attempt failed ─▶ retry ─▶ back_off ┘
//
// Between the pick and the first batch a connection may die; gRPC then fails the call with
// UNAVAILABLE, or tries to connect anew and fails it then. A server that goes away leaves calls out
// by GOAWAY, and one that has too many refuses some with REFUSED_STREAM. No server has looked at
// any of these: actors::reach_of() says what proves that. They are made again without a policy;
// one that a server refused, once.
//
// The first attempt is the application's own call. Its completion is held back inside the
// interceptor, each further attempt runs as a call of serialized messages through the same channel,
// and the outcome of the last is written where the first one's would have been. The held batch
// carries the attempts: they complete with its tag, and so wherever the application waits for it,
// which costs no thread; to the batch a completion more means nothing. Only unary calls in
// one batch qualify: the synchronous API, the asynchronous one without ReadInitialMetadata, the
// callback API with a function; generated stubs and generic ones.

#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/call_op_set.h>
#include <grpcpp/support/client_interceptor.h>

#include "channel/grpc/back_off.hpp"
#include "channel/grpc/call_binder.hpp"

namespace signalbox::channel {

class CallObserver;

/// Where a unary call's batch puts its reply.
class ReplySlot {
 public:
  /// nullopt: the batch is not one of a unary stub.
  static std::optional<ReplySlot> of(grpc::internal::CallOpSetInterface* ops, void* reply);

  /// Takes what is in `response`, and shows it to the interceptors of the batch.
  grpc::Status fill(grpc::ByteBuffer& response,
                    grpc::internal::InterceptorBatchMethodsImpl& batch) const;

 private:
  // Generated stubs receive into a MessageLite.
  using Message = grpc::internal::CallOpRecvMessage<google::protobuf::MessageLite>;
  using Bytes = grpc::internal::CallOpRecvMessage<grpc::ByteBuffer>;

  std::variant<Message*, Bytes*> op_;
  void* reply_ = nullptr;
};

/// The completion that is held back.
struct HeldBatch {
  std::shared_ptr<CallBinder> binder;
  grpc::ClientContext* user = nullptr;
  const CallObserver* observer = nullptr;
  const char* method = nullptr;
  grpc::ByteBuffer* request = nullptr;
  grpc::experimental::InterceptorBatchMethods* batch = nullptr;
  grpc::internal::CallOpSetInterface* ops = nullptr;
  grpc::CompletionQueue* cq = nullptr;
  ReplySlot reply;
};

class RetriedCall final {
 public:
  RetriedCall(HeldBatch held, CallIntent intent);
  ~RetriedCall();
  RetriedCall(const RetriedCall&) = delete;
  RetriedCall& operator=(const RetriedCall&) = delete;

  /// Makes the next attempt after `delay`. Proceeds with the batch in the end; then this may be
  /// gone.
  void start(Duration delay);

  /// The application has cancelled the call: nothing is waited for any more. Never proceeds.
  void cancel();

  /// The held batch has come back again: the attempt that it carried has ended. As start().
  void attempt_ended();

 private:
  struct Attempt;

  void attempt();
  void backed_off();
  void deliver(Attempt& last);

  const HeldBatch held_;
  const std::shared_ptr<CallBinder> binder_;
  grpc::ClientContext* const user_;
  const std::string method_;
  const std::multimap<std::string, std::string> metadata_;
  const std::shared_ptr<grpc::ChannelInterface> channel_;
  /// Of the held batch: what else it carries takes them from it.
  std::vector<grpc::experimental::InterceptionHookPoints> hooks_;
  grpc::ByteBuffer request_;
  std::optional<CallIntent> intent_;  ///< Of the next attempt, or of the one that was bound.
  std::string set_cookie_;            ///< Of the attempt whose outcome is delivered.
  std::vector<grpc_call*> earlier_;   ///< The calls that the user's context had before.
  std::vector<std::unique_ptr<Attempt>> attempts_;
  std::mutex mutex_;
  std::shared_ptr<BackOff> back_off_;  ///< Guarded by mutex_.
};

}  // namespace signalbox::channel
