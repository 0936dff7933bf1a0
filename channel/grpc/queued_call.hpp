// SPDX-License-Identifier: Apache-2.0
//
// QueuedCall — a call that waits for a connection (states below). The application can start and
// cancel the call, and its deadline holds. The call waits for a publication: a new snapshot, by
// which the router may pick a connection. A call that a filter delays (A33) waits for the end of
// its delay instead. A call with a pick for an endpoint that has no free stream (A105) waits for a
// stream of this endpoint, and does not pick again meanwhile.
//
//            first op              a pick, or its end          all ops replayed
//   Prepared ────────▶ Waiting ──────────────────▶ Replaying ──────────────▶ Bound ─▶ Gone
//                        ▲   │ claimed, by one thread                               (context)
//                        └───┘ not yet
//
// Prepared: the application has not started the call. Waiting: for a pick with a connection, for
// the end of the delay, or for a stream. Replaying: the stored op sets are filled into the real
// call. Gone: the context is destroyed; also from Prepared, if the call is never started.
//
// The application's context gets a *holding call* on the anchor channel, which never connects. Only
// RECV_STATUS is started on the holding call, so that gRPC reports its cancellation and its
// deadline. The application's op sets (batches) are stored. When the call gets a connection, the
// *real call* is made on the application's own queue, and replaces the holding call in the context.
// The op sets are then filled into the real call, and only then do the call's interceptors run.
//
// Invariants
//   Q1  Only the thread that has claimed the call (State::kClaimed) uses the application's context
//       and the pick; the call cannot complete meanwhile. No lock is held while an op set is
//       filled: it may run the application's code, and may complete, after which this object, the
//       context and the queue may be destroyed.
//   Q2  The context's earlier calls live until ~ClientContext, because data that the application
//       reads is in the arenas of these calls.
//   Q3  The application's completion queue has one hold for each stored op set (Shutdown() of the
//       queue does not finish while there are holds), so that the queue is not destroyed before the
//       op set is filled. gRPC takes a hold when an op set is filled; the hold for the stored op
//       set is then released.

#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include "channel/grpc/call_binder.hpp"
#include "channel/pick/pick_wait.hpp"

namespace signalbox::channel {

class QueuedCall final : public grpc::internal::CallHook,
                         public Waiter,
                         public std::enable_shared_from_this<QueuedCall> {
 public:
  /// Makes a new call that waits.
  static grpc::internal::Call hold(std::shared_ptr<CallBinder> binder,
                                   CallIntent intent,
                                   const CallSite& site);

  /// Makes a call that waits, and that replaces `call`: the connection of `call` died before the
  /// first batch, or `call` was an attempt that failed and another attempt follows.
  static std::shared_ptr<QueuedCall> instead_of(const grpc::internal::Call& call,
                                                const grpc::internal::RpcMethod& method,
                                                grpc::ClientContext& context,
                                                AttemptedCall& interceptor,
                                                std::shared_ptr<CallBinder> binder,
                                                CallIntent intent);

  QueuedCall(std::shared_ptr<CallBinder> binder,
             CallIntent intent,
             const grpc::internal::RpcMethod& method,
             grpc::ClientContext& context,
             grpc::CompletionQueue* cq);
  ~QueuedCall() override;

  void PerformOpsOnCall(grpc::internal::CallOpSetInterface* ops,
                        grpc::internal::Call* call) override;
  void wake() override;

 private:
  enum class State { kPrepared, kWaiting, kClaimed, kReplaying, kBound, kGone };
  enum class Delay { kNone, kRunning, kOver };
  struct ContextOwner;

  void count();
  void make_holding_call();
  void watch_holding_call();
  void try_bind();
  bool claim();
  Verdict pick_again();
  Verdict pick_next();
  Verdict claim_stream();
  void wait_for_stream(const lb::StreamLanes& streams);
  bool may_go_elsewhere() const;
  bool keep_waiting();
  bool has_waited();
  void bind(Verdict verdict);
  void replay(std::unique_lock<std::mutex> lock);
  void fill(grpc::internal::CallOpSetInterface* ops);
  void limit();
  void holding_ended(const absl::Status& status);
  bool is_cancelled() const;
  std::string waiting_for_stream() const;
  absl::Status why_waiting_ended(const absl::Status& how) const;
  void end_early(const absl::Status& status);
  void context_gone();

  const std::shared_ptr<CallBinder> binder_;
  const std::string name_;
  grpc::ClientContext& context_;
  grpc::CompletionQueue* const cq_;
  CallIntent intent_;
  PickWait wait_;  ///< Only the thread that has claimed the call uses it (Q1).
  /// The call's place among those that wait for a stream; null: it waits for none. Only the thread
  /// that has claimed the call uses it (Q1).
  std::shared_ptr<lb::StreamWait> stream_;
  Interception interception_;
  /// The timer for a route's timeout, if the route became known while the call waited.
  grpc::Alarm alarm_;
  grpc::Alarm delay_alarm_;

  std::mutex mutex_;  ///< Guards the members below.
  State state_ = State::kPrepared;
  Delay delay_ = Delay::kNone;
  std::optional<absl::Status> ended_;  ///< The call was cancelled or timed out before it was bound.
  std::deque<grpc::internal::CallOpSetInterface*> stored_;
  grpc_call* holding_ = nullptr;
  std::vector<grpc_call*> earlier_;  ///< The context's earlier calls (Q2), and the real call.
  grpc::internal::Call real_;
};

}  // namespace signalbox::channel
