// SPDX-License-Identifier: Apache-2.0
//
// GrpcPoller — who serves gRPC's sockets while the application does not, and who hears of it.
//
//   connector, ADS transport, queued calls ─▶ start an operation
//      on callback_queue(): its functor runs at once, on a thread of gRPC's executor
//      on queue():          its Tag runs on the poller's thread
//
// In gRPC 1.51 sockets are served by whoever waits on a completion queue, and by one such thread at
// a time for all: a thread of ours that always waited there would take every answer first, and hand
// it over to the application's thread that waits for it. That costs a synchronous call a quarter
// of its latency. So the poller looks in, every 10 ms, and waits inside gRPC only for a moment
// after hurry(). What the application's own threads find, functors hear at once: while these are
// seen to serve the sockets often, it looks in every 50 ms, until a Tag has something to hear. Tags
// always wait for a look.
//
// One for the process, for as long as something of ours has a Hold: then its queues are shut down,
// and gRPC is as it would be without us. A Hold that comes later starts another one. Its thread
// lives while something has an Interest.
//
// Invariants
//   P1  What is started on a queue has a Hold until it has ended, and a Tag an Interest: only the
//       poller's thread tells Tags.
//   P2  The end of a poller runs on a plain thread, which the last Hold does not wait for: that one
//       may end in a callback, and gRPC joins its threads when it shuts down.
//   P3  Nothing is shut down once the process runs its exit handlers.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include <grpcpp/completion_queue.h>

#include "messages/ids.hpp"

namespace signalbox::actors {

class GrpcPoller {
  class Poller;
  class Ends;

 public:
  /// What an operation on queue() is started with.
  class Tag {
   public:
    virtual ~Tag() = default;
    virtual void done(bool ok) = 0;
  };

  /// Keeps the queues, and with them gRPC. Calls take none: their channel has one.
  class Hold {
   public:
    /// Of the process's poller, which is made if there is none.
    Hold();

    /// Tags are GrpcPoller::Tag, and own themselves.
    grpc::CompletionQueue& queue() const;

    /// Tags are grpc_completion_queue_functors, and own themselves.
    grpc_completion_queue* callback_queue() const;

    /// Something is about to happen: answers are waited for, for a moment.
    void hurry() const;

    /// From now on the threads of gRPC's callback API live at least as long as the poller.
    void keep_callback_threads() const;

   protected:
    std::shared_ptr<Poller> poller_;
  };

  /// While one lives, sockets are served. A Tag may destroy the last one: then the thread ends when
  /// the Tag has returned.
  class Interest : public Hold {
   public:
    Interest();
    ~Interest();
    Interest(const Interest&) = delete;
    Interest& operator=(const Interest&) = delete;
  };

  /// The calling thread, which is not the poller's, has just served the sockets.
  static void note_served() {
    const int before = served.load(std::memory_order_relaxed);  // A note that is lost is no loss.
    if (before < kOften) served.store(before + 1, std::memory_order_relaxed);
  }

  /// How often pollers have looked in, since the process began.
  static std::uint64_t looks() { return looks_; }

 private:
  // So many times between two looks is often: a call now and then is no reason to look in less.
  static constexpr int kOften = 5;

  // Since the last look, and not more than kOften: so it is read once a call, and hardly written.
  static inline std::atomic<int> served = 0;

  static inline std::atomic<std::uint64_t> looks_ = 0;
};

/// An instant as gRPC's timers and calls take it.
gpr_timespec grpc_deadline(Instant deadline);

/// Tells the end of a core call once, on a thread of gRPC's executor. `call` is on the poller's
/// callback_queue(), and nothing was started on it. With `send`, its headers are sent first: else
/// it only ends by deadline or cancellation. `ended` has a Hold (P1), or something that has one.
void watch_end(grpc_call* call, bool send, std::function<void(const absl::Status& status)> ended);

}  // namespace signalbox::actors
