// SPDX-License-Identifier: Apache-2.0
//
// Calls — carry out one Plan through one of gRPC's APIs, and report the end to the Ledger.
//
//   channel, Plan ─▶ run_sync | AsyncCall on a queue | start_callback ─▶ Ledger::end
//                        └ the Canceller shares the context, and may be its last owner

#pragma once

#include <memory>
#include <type_traits>

#include <grpcpp/grpcpp.h>

#include "tests/stress/canceller.hpp"
#include "tests/stress/ledger.hpp"
#include "tests/stress/plan.hpp"

namespace signalbox::stress {

using ChannelPtr = std::shared_ptr<grpc::ChannelInterface>;

/// Conversions to and from the bytes that generic stubs send and receive.
grpc::ByteBuffer to_wire(const Request& request);
Reply from_wire(const grpc::ByteBuffer& bytes);

/// The objects that all calls use.
struct Means {
  Ledger& ledger;
  Canceller& canceller;
};

/// The part of a call that is the same for all APIs.
class CallBody {
 public:
  CallBody(const Means& means, const Plan& its_plan) : plan(its_plan), means_(means) {}

  /// Enters the call in the ledger, and sets deadline and cancellation. `self` owns this object.
  void begin(const std::shared_ptr<CallBody>& self);

  /// The message to send: a Request, or its bytes for a generic stub.
  template <typename Message>
  Message outgoing() const {
    if constexpr (std::is_same_v<Message, Request>) return plan.request();
    if constexpr (std::is_same_v<Message, grpc::ByteBuffer>) return to_wire(plan.request());
  }

  /// Checks that `reply` is what the server was asked for, and counts it.
  void got(const Reply& reply);

  void got(const grpc::ByteBuffer& reply) { got(from_wire(reply)); }

  void end(const grpc::Status& status);

  void abandon() { means_.ledger.abandon(plan); }

  const Plan plan;
  grpc::ClientContext context;
  int written = 0;

 private:
  bool is_whole() const;

  const Means means_;
  int replies_ = 0;
  bool wrong_ = false;
};

/// Makes a call through the synchronous API. Returns when the call has ended, or, with
/// Plan::abandon, when the application gives the call up; the call may then still run.
void run_sync(const Means& means, const ChannelPtr& channel, const Plan& plan);

/// The object to which a tag of a completion queue points.
class AsyncCall {
 public:
  virtual ~AsyncCall() = default;
  /// An operation of the call is complete. The call may delete itself in here.
  virtual void proceed(bool ok) = 0;
};

/// Starts a call, which continues as `queue` returns its tags (AsyncCalls). A unary call starts
/// no further operation on the queue once this function has returned.
void start_async(const Means& means,
                 const ChannelPtr& channel,
                 const Plan& plan,
                 grpc::CompletionQueue& queue);

/// Starts a call, which continues on gRPC's own threads.
void start_callback(const Means& means, const ChannelPtr& channel, const Plan& plan);

}  // namespace signalbox::stress
