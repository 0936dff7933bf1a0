// SPDX-License-Identifier: Apache-2.0
//
// RetriedCall — makes a call again until the server has responded: at once, if no server has
// processed the call (D2 of grpc_channel.hpp), or after a back-off, if its route's retry policy
// covers it (gRFCs A6, A44). One mechanism serves unary calls and streams.
//
//   call_interceptor: batches ─▶ [RetriedCall] ─┬▶ continue: no batch failed, or a response came
//                        attempts: again? ◀─────┴▶ hold the batch: the attempt has ended without
//                                                  a response
//
// A connection may die between the pick and the first batch. gRPC then fails the call with
// UNAVAILABLE at once, or after another attempt to connect. A server that shuts down says in a
// GOAWAY which calls it does not process. A server with too many streams refuses some of them with
// REFUSED_STREAM. In all these cases no server has processed the call; actors::reach_of() has the
// proofs. Such calls are made again without a policy, after Reach::kRefused only once.
//
// A RetriedCall watches all batches of a stream, and of a unary call that reads its headers
// separately. A unary call in one batch needs a RetriedCall only once an attempt has failed:
// take_over().
//
//          a batch failed      all batches are back, status known   sent data is sent again
//   Open ──────────────▶ Ending ────────────────────────────▶ Again ──────────────────────▶ Open
//     │ answered, too large │ no retry                   back-off, queued_call
//     └──────▶ Settled ◀────┘
//
// Open: batches run on the current attempt. Ending: the attempt has failed, and some of its batches
// are not back yet, or its status is unknown. Again: another attempt follows; batches that the
// application starts meanwhile are stored. Settled: no further attempt follows. A response that is
// found in Ending settles the call, too, and so does an operation that is unknown (is_blind_).
//
// Each attempt is a call on the application's own queue; the first attempt is the application's own
// call. A call without failures costs no thread and no copy. Serialized messages are kept until the
// server responds, or until they exceed RuntimeOptions::retry_buffer_bytes. A batch that fails
// while the messages are kept is held in the innermost interceptor.
//
// When all batches of a failed attempt are back, one of them becomes the *carrier*. RetriedCall's
// own operations (receive the status, send the kept data again) are started with the carrier's tag.
// These operations complete wherever the application waits for that tag: on a queue, by a pluck, or
// in a callback. RetriedCall catches these completions in the innermost interceptor, so neither the
// batch nor the application notices them. When the kept data is sent, batches that receive are
// filled into the new call, and batches that only send end with success.
//
// The application's interceptors see the hook points of a batch once. When a batch that receives is
// filled into a new call, it passes the interceptors again, but without a hook point. If an
// interceptor continues a batch on another thread, the call is not made again: RetriedCall then
// cannot know the operations of the batch (ops_scope.hpp).
//
// Invariants
//   S1  An attempt is abandoned only when none of its batches is in flight, and none is on its way
//       from the stub to this object.
//   S2  When another attempt follows a failed attempt, the application sees neither the failure nor
//       the metadata of the failed one.
//   S3  A reactor is told that there is no initial metadata exactly when the last attempt's
//       response had no headers, as with gRPC's own reactors.
//   S4  No lock is held while a batch is started or continued: afterwards this object, the context
//       and the queue may be destroyed.

#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/call_op_set.h>
#include <grpcpp/support/client_interceptor.h>

#include "channel/grpc/attempts.hpp"
#include "channel/grpc/back_off.hpp"

namespace signalbox::channel {

/// The first batch of a unary call's first attempt. It is the only batch if the stub also receives
/// everything in it: is_whole().
struct UnaryBatch {
  grpc::ByteBuffer request;
  /// The batch; null: unknown, because an interceptor answers the call instead of a server, or has
  /// continued the batch on another thread.
  grpc::internal::CallOpSetInterface* ops = nullptr;
  grpc::internal::Call call;  ///< The call that `ops` belong to.
  bool receives = false;      ///< The batch also receives the reply.

  /// Whether `batch`, which has ended with a status, is this batch, and was made by a unary stub.
  bool is_whole(grpc::experimental::InterceptorBatchMethods& batch) const;
};

class RetriedCall final : public std::enable_shared_from_this<RetriedCall> {
 public:
  /// `owner` is the call that the attempts belong to. `entering`: the number of batches that the
  /// stub has begun and that intercept() has not seen yet.
  RetriedCall(Attempts& attempts, AttemptedCall& owner, int entering);
  ~RetriedCall();
  RetriedCall(const RetriedCall&) = delete;
  RetriedCall& operator=(const RetriedCall&) = delete;

  /// The first attempt of a unary call in one batch has failed, and another attempt follows after
  /// `delay`. Takes the batch over; `methods` belong to the batch. When take_over() has returned,
  /// this object may be destroyed already.
  void take_over(UnaryBatch& unary,
                 grpc::experimental::InterceptorBatchMethods& methods,
                 Duration delay);

  /// Fills the batch into the current attempt. In the states Ending and Again, stores it instead
  /// (stored_). `held`: a completion queue on which the caller has a hold; null: none (OpsScope).
  void fill(grpc::internal::CallOpSetInterface* ops,
            const grpc::internal::Call& call,
            grpc::CompletionQueue* held);

  /// A batch has reached the innermost interceptor: before its operations start, or after they have
  /// ended. Returns false if the interceptor must continue the batch. Returns true if this object
  /// continues the batch later, or has done so already; this object may then be destroyed.
  bool intercept(grpc::experimental::InterceptorBatchMethods& batch);

  /// The application has cancelled the call: ends the back-off.
  void cancel();

  /// Bytes of kept messages; nullopt: the messages were too large and are not kept.
  std::optional<std::size_t> kept_bytes();

  /// Whether this object has seen all batches of the call. If not, the call cannot be made again.
  bool is_observed();

 private:
  enum class State { kOpen, kEnding, kAgain, kSettled };
  enum class Step { kHeaders, kStatus, kReplay };
  class Replay;
  struct Batch;
  struct End;
  struct Sends;
  using Lock = std::unique_lock<std::mutex>;
  using Methods = grpc::experimental::InterceptorBatchMethods;

  bool go_out(Lock lock, Methods& methods);
  bool come_back(Lock lock, Batch& batch);
  bool judge(Lock lock, Batch& batch);
  bool is_answered();
  bool is_without_headers(const Batch& batch);
  static void tell_sent(const Batch& batch);
  void forget(const Batch& batch);
  void rest();
  void settle(Lock lock);
  void advance(Lock lock);
  void ask(Lock lock);
  void stepped(Lock lock);
  void decide(Lock lock);
  void follow(Lock lock, Duration delay);
  void again();
  void replay(const grpc::internal::Call& call);
  void send_next(Lock lock);
  void refill(Lock lock);
  void carry(Lock lock, Step step, const grpc_op* ops, std::size_t count);
  void record_transport();
  void remember(Methods& methods, grpc::internal::CallOpSetInterface* ops);
  void rearm(Batch& batch);
  Batch* find(const Methods& methods);

  Attempts& attempts_;
  AttemptedCall& owner_;
  grpc::ClientContext& context_;
  const std::unique_ptr<Replay> replay_;

  std::mutex mutex_;  ///< Guards the members below.
  /// True: the call is settled, no batch is left in batches_, and the application still receives
  /// the headers itself. So fill() only passes the batch to the current call, intercept() has
  /// nothing to do, and neither takes a lock.
  std::atomic<bool> is_quiet_{false};
  State state_ = State::kOpen;
  Step step_ = Step::kHeaders;
  int entering_;
  /// True: the operations of a batch are unknown, because an interceptor continued the batch on
  /// another thread. So the call cannot be made again.
  bool is_blind_ = false;
  grpc::internal::Call current_;
  std::list<Batch> batches_;
  /// Batches that the application has started in Ending or Again, the oldest first. They are filled
  /// into the next attempt, or, if none follows, into the last attempt's call or `refused_`.
  std::vector<grpc::internal::CallOpSetInterface*> stored_;

  // The data that the application has sent: headers, messages, the end of the messages.
  bool has_begun_ = false;
  bool is_closed_ = false;
  bool is_large_ = false;
  std::vector<grpc::ByteBuffer> log_;
  std::size_t log_bytes_ = 0;

  // The part of the sent data that must still be sent again.
  bool sends_headers_ = false;
  bool sends_close_ = false;
  std::size_t next_ = 0;
  std::unique_ptr<Sends> sends_;
  std::multimap<std::string, std::string> headers_;

  /// Whether a server may have seen something of the current attempt. True once a message was sent,
  /// or once gRPC has said that the attempt has a transport (record_transport()). When a batch of
  /// headers alone fails, none of their bytes has left. When a batch with headers and a message
  /// fails, gRPC does not say which of the two failed: the headers count as seen if the server's
  /// handler may begin with them.
  bool was_taken_ = false;

  // What is known of the end of the current attempt.
  bool has_headers_ = false;  ///< gRPC has delivered the headers, or has said that there are none.
  bool are_ours_ = false;     ///< RetriedCall itself received the headers, into the context.
  std::unique_ptr<End> end_;  ///< The attempt's status; null: it has not been asked for yet.
  /// The call on which the application's remaining batches run when RetriedCall itself has received
  /// the status, which gRPC delivers only once. Null: they run on the last attempt's call.
  grpc_call* refused_ = nullptr;
  std::shared_ptr<BackOff> back_off_;
};

}  // namespace signalbox::channel
