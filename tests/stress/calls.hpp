// SPDX-License-Identifier: Apache-2.0
//
// Calls — one plan carried out through one of gRPC's APIs, and its end told to the ledger.
//
//   channel, Plan ─▶ run_sync | AsyncCall on a queue | start_callback ─▶ Ledger::end
//                        └ the context is shared with the Canceller, who may be the last to let go

#pragma once

#include <memory>
#include <type_traits>

#include <grpcpp/grpcpp.h>

#include "tests/stress/canceller.hpp"
#include "tests/stress/ledger.hpp"
#include "tests/stress/plan.hpp"

namespace signalbox::stress {

using ChannelPtr = std::shared_ptr<grpc::ChannelInterface>;

/// To and from the bytes that generic stubs send and receive.
grpc::ByteBuffer to_wire(const Request& request);
Reply from_wire(const grpc::ByteBuffer& bytes);

/// The objects that all calls use.
struct Means {
  Ledger& ledger;
  Canceller& canceller;
};

/// The part of a call that its API does not matter for.
class CallBody {
 public:
  CallBody(const Means& means, const Plan& its_plan) : plan(its_plan), means_(means) {}

  /// Enters it, and sets its deadline and its cancellation. `self` owns this.
  void begin(const std::shared_ptr<CallBody>& self);

  /// What it sends: a Request, or what a generic stub carries.
  template <typename Message>
  Message outgoing() const {
    if constexpr (std::is_same_v<Message, Request>) return plan.request();
    if constexpr (std::is_same_v<Message, grpc::ByteBuffer>) return to_wire(plan.request());
  }

  /// Whether `reply` is what the server was asked for; counts it.
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

/// Returns when it has ended.
void run_sync(const Means& means, const ChannelPtr& channel, const Plan& plan);

/// What a completion queue's tags point to.
class AsyncCall {
 public:
  virtual ~AsyncCall() = default;
  /// One of its operations is complete. It may be gone then.
  virtual void proceed(bool ok) = 0;
};

/// Goes on as the queue's tags, which are AsyncCalls, are complete. A unary call needs the queue
/// for nothing more once this has returned.
void start_async(const Means& means,
                 const ChannelPtr& channel,
                 const Plan& plan,
                 grpc::CompletionQueue& queue);

/// Goes on in gRPC's own threads.
void start_callback(const Means& means, const ChannelPtr& channel, const Plan& plan);

}  // namespace signalbox::stress
