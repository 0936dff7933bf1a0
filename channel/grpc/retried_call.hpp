// SPDX-License-Identifier: Apache-2.0
//
// RetriedCall — makes a unary call again: at once, if no server has processed the call (D2), or
// after a back-off, if its route's retry policy covers it (gRFCs A6, A44).
//
//   call_observer: the first attempt failed ─▶ CallBinder::retry ─▶ [RetriedCall] ─┬▶ pick again
//        the application's batch goes on with the last attempt's outcome ◀─────────┘  ▲
//                                                  attempt failed ─▶ retry ─▶ back_off ┘
//
// A connection may die between the pick and the first batch. gRPC then fails the call with
// UNAVAILABLE at once, or after another attempt to connect. A server that shuts down leaves calls
// out by GOAWAY. A server with too many streams refuses some with REFUSED_STREAM. In all these
// cases no server has processed the call; actors::reach_of() has the proofs. Such calls are made
// again without a policy, after REFUSED_STREAM only once.
//
// The first attempt is the application's own call. The interceptor holds its completion back. Each
// further attempt is a call of serialized messages through the same channel. The outcome of the
// last attempt is written into the held batch. Attempts complete with the held batch's tag, and so
// wherever the application waits for it; that costs no thread, and the batch does not notice
// additional completions.
//
// Only unary calls in one batch qualify, of generated and generic stubs: the synchronous API, the
// asynchronous API without ReadInitialMetadata, and the callback API with a function.

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

/// The place for the reply in a unary call's batch.
class ReplySlot {
 public:
  /// nullopt: the batch is not a unary stub's.
  static std::optional<ReplySlot> of(grpc::internal::CallOpSetInterface* ops, void* reply);

  /// Moves `response` into the reply, and shows the reply to the batch's interceptors.
  grpc::Status fill(grpc::ByteBuffer& response,
                    grpc::internal::InterceptorBatchMethodsImpl& batch) const;

 private:
  // Generated stubs receive into a MessageLite.
  using Message = grpc::internal::CallOpRecvMessage<google::protobuf::MessageLite>;
  using Bytes = grpc::internal::CallOpRecvMessage<grpc::ByteBuffer>;

  std::variant<Message*, Bytes*> op_;
  void* reply_ = nullptr;
};

/// The held completion of the first attempt.
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

  /// Makes the next attempt after `delay`. In the end continues the batch; this object may be
  /// destroyed then.
  void start(Duration delay);

  /// The application has cancelled the call: ends the back-off. Never continues the batch.
  void cancel();

  /// The held batch has completed again: the current attempt has ended. Continues like start().
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
  /// The held batch's hook points. Completions of attempts remove them from the batch.
  std::vector<grpc::experimental::InterceptionHookPoints> hooks_;
  grpc::ByteBuffer request_;
  std::optional<CallIntent> intent_;  ///< The intent of the next or the bound attempt.
  std::string set_cookie_;            ///< From the attempt with the delivered outcome.
  std::vector<grpc_call*> earlier_;   ///< Earlier calls of the user's context.
  std::vector<std::unique_ptr<Attempt>> attempts_;
  std::mutex mutex_;
  std::shared_ptr<BackOff> back_off_;  ///< Guarded by mutex_.
};

}  // namespace signalbox::channel
