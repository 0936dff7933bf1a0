// SPDX-License-Identifier: Apache-2.0
//
// QueuedCall — a call that has no connection yet (drawn below), as the application sees it: it can
// be started, cancelled, and run into its deadline.
//
//            first op              a pick, or its end          all ops replayed
//   Prepared ────────▶ Waiting ──────────────────▶ Replaying ──────────────▶ Bound ─▶ Gone
//                        ▲   │ claimed, by one thread                               (context)
//                        └───┘ not yet
//
// The application's context gets a *holding call* on the anchor channel, which never connects; of
// it only RECV_STATUS is started, so that gRPC reports its cancellation and its deadline. Op sets
// are stored. When the call is bound, the *real call* is made on the application's own queue,
// under a shadow context, and the op sets are filled into it.
//
// Invariants
//   Q1  Only the thread that has claimed the call touches the application's context and the pick;
//       the call cannot complete meanwhile. No lock is held while ops are filled: they may run
//       the application's code, and then this, the context and the queue may be gone.
//   Q2  The holding call lives until ~ClientContext: what the application reads is in its arena.
//   Q3  The queue is held once per stored op set, and released when that has its own hold.

#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include "channel/call_binder.hpp"

namespace signalbox::channel {

class QueuedCall final : public grpc::internal::CallHook,
                         public Waiter,
                         public std::enable_shared_from_this<QueuedCall> {
 public:
  QueuedCall(std::shared_ptr<CallBinder> binder,
             CallIntent intent,
             const grpc::internal::RpcMethod& method,
             grpc::ClientContext& context,
             grpc::CompletionQueue* cq);
  ~QueuedCall() override;

  /// Makes the holding call. Owned by the context from now on.
  grpc::internal::Call hold();

  void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                        grpc::internal::Call* call) override;
  void wake() override;

 private:
  enum class State { kPrepared, kWaiting, kClaimed, kReplaying, kBound, kGone };
  struct StatusWatch;
  struct ContextOwner;

  void try_bind();
  bool claim();
  Verdict pick_again();
  bool keep_waiting();
  void bind(Verdict verdict);
  void replay(std::unique_lock<std::mutex> lock);
  void limit();
  void holding_ended(const absl::Status& status);
  void end_early(const absl::Status& status);
  void context_gone();

  const std::shared_ptr<CallBinder> binder_;
  const std::string name_;
  const grpc::internal::RpcMethod::RpcType type_;
  grpc::ClientContext& context_;
  grpc::CompletionQueue* const cq_;
  CallIntent intent_;
  grpc::Alarm alarm_;  ///< For a route's timeout that was learnt only while waiting.

  std::mutex mutex_;  ///< Guards all below.
  State state_ = State::kPrepared;
  std::optional<absl::Status> ended_;  ///< Cancelled, or out of time, before it was bound.
  std::deque<grpc::internal::CallOpSetInterface*> stored_;
  grpc_call* holding_ = nullptr;
  bool owns_holding_ = false;
  grpc::internal::Call real_;
  grpc::ClientContext shadow_;
};

}  // namespace signalbox::channel
