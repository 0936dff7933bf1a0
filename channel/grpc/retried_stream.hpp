// SPDX-License-Identifier: Apache-2.0
//
// RetriedStream — makes a call of several batches again until the server has answered: streams, and
// unary calls whose headers are read apart (gRFCs A6, A44).
//
//   call_observer: batches ─▶ [RetriedStream] ─┬▶ go on: nothing has failed, or the server answered
//                                              └▶ held: the attempt has ended without an answer
//
//          a batch failed      all of them are back, status known     what was sent is sent again
//   Open ──────────────▶ Ending ────────────────────────────▶ Again ──────────────────────▶ Open
//     │ answered, too large │ no retry                   back-off, queued_call
//     └──────▶ Settled ◀────┘
//
// Each attempt is a call on the application's own queue, the first one the call that it made: what
// succeeds costs no thread and no copy. Serialized messages are remembered until the server answers
// or they are more than RuntimeOptions::retry_buffer_bytes. A batch that fails before that is held
// where the innermost interceptor sees its completion. When all are back, one of them is the
// *carrier*: what has to be done on a call (receive its status, send again what was sent) is
// started with the carrier's tag, so that it completes wherever the application waits for that,
// be it a queue of tags, a plucked one or a callback; to the batch a completion more means nothing.
// Then batches that receive are filled into the new call, and those that only send end well.
//
// The application's interceptors see the hooks of a batch once; one that receives is shown to
// them once more on its way out, without a hook. If one goes on with a batch on another thread, the
// call is not made again.
//
// Invariants
//   S1  An attempt is given up only when no batch of it is under way, or between the stub and this.
//   S2  Nothing is told of an attempt that is made again, neither that it failed nor its metadata.
//   S3  A reactor hears that there is no initial metadata exactly where the last attempt's response
//       had no headers, as gRPC's own reactors do.
//   S4  No lock is held while a batch is started or goes on: then this, the context and the queue
//       may be gone.

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

#include "channel/grpc/back_off.hpp"
#include "channel/grpc/call_binder.hpp"

namespace signalbox::channel {

class CallObserver;

class RetriedStream final : public std::enable_shared_from_this<RetriedStream> {
 public:
  /// `most_kept`: of the messages, in bytes. `entering`: batches that are on their way already.
  RetriedStream(CallObserver& observer,
                grpc::ClientContext& context,
                std::size_t most_kept,
                int entering);
  ~RetriedStream();
  RetriedStream(const RetriedStream&) = delete;
  RetriedStream& operator=(const RetriedStream&) = delete;

  /// Fills the batch into the attempt that runs, now or when there is one. `held`: see OpsScope.
  void fill(grpc::internal::CallOpSetInterface* ops,
            const grpc::internal::Call& call,
            grpc::CompletionQueue* held);

  /// A batch has come to the innermost interceptor, on its way out or back. True: it goes on later,
  /// or has done so, and then this may be gone.
  bool intercept(grpc::experimental::InterceptorBatchMethods& batch);

  /// The application has cancelled the call: nothing is waited for any more.
  void cancel();

  /// Of the messages; nullopt: they were too large, and are not remembered any more.
  std::optional<std::size_t> kept_bytes();

  /// Whether the call could have been made again until it was answered or grew too large.
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
  void again();
  void replay(const grpc::internal::Call& call);
  void send_next(Lock lock);
  void refill(Lock lock);
  void carry(Lock lock, Step step, const grpc_op* ops, std::size_t count);
  void note_transport();
  void remember(Methods& methods, grpc::internal::CallOpSetInterface* ops);
  void rearm(Batch& batch);
  Batch* find(const Methods& methods);

  CallObserver& observer_;
  grpc::ClientContext& context_;
  const std::size_t most_kept_;
  const std::unique_ptr<Replay> replay_;

  std::mutex mutex_;                   ///< Guards all below.
  std::atomic<bool> is_quiet_{false};  ///< Settled, and there is nothing left to be done.
  State state_ = State::kOpen;
  Step step_ = Step::kHeaders;
  int entering_;
  bool is_blind_ = false;  ///< A batch came of which nothing is known.
  grpc::internal::Call current_;
  std::list<Batch> batches_;
  std::vector<grpc::internal::CallOpSetInterface*> stored_;  ///< To be filled, in that order.

  // What was sent.
  bool has_begun_ = false;
  bool is_closed_ = false;
  bool is_large_ = false;
  std::vector<grpc::ByteBuffer> log_;
  std::size_t log_bytes_ = 0;

  // What is left of it to be sent again.
  bool sends_headers_ = false;
  bool sends_close_ = false;
  std::size_t next_ = 0;
  std::unique_ptr<Sends> sends_;
  std::multimap<std::string, std::string> headers_;

  /// A server may have seen something of the attempt. While it is false, no message was sent, and
  /// each batch with the headers failed. gRPC says that headers have failed only before any of
  /// their bytes has left; of a batch with a message, too, it does not say which of the two failed.
  bool was_taken_ = false;

  // How the attempt ended.
  bool has_headers_ = false;      ///< Its headers were asked for, and either came or do not exist.
  bool are_ours_ = false;         ///< They came, and we asked: the context has them.
  std::unique_ptr<End> end_;      ///< Null: it is not known.
  grpc_call* refused_ = nullptr;  ///< What the rest of the call runs on, where we have its status.
  std::shared_ptr<BackOff> back_off_;
};

}  // namespace signalbox::channel
