// SPDX-License-Identifier: Apache-2.0
//
// GrpcPoller — serves gRPC's sockets while the application does not, and reports completions.
//
//   connector, ADS transport, queued calls ─▶ start an operation
//      on callback_queue(): its functor runs at once, on a thread of gRPC's executor
//      on queue():          its Tag runs on the poller's thread
//
// In gRPC 1.51 the threads that wait on completion queues serve the sockets. One of them at a time
// serves all sockets. If a thread of signalbox always waited on a queue, it would read every
// response first, and then pass the response to the application's waiting thread. This would cost a
// synchronous call a quarter of its latency. So the poller polls every 10 ms, and waits inside gRPC
// only for 100 ms after hurry().
//
// While the application's threads serve the sockets often, the poller polls only every 50 ms. A
// functor does not wait for a poll: it runs at once when a thread of the application finds its
// completion. A Tag always waits for the next poll. After a poll that found a completion, the next
// poll comes after 10 ms again.
//
// The process has one poller for as long as a Hold exists. Without a Hold its queues are shut down,
// and gRPC is as it would be without signalbox. A later Hold starts another poller. The poller's
// thread lives while an Interest exists.
//
// Invariants
//   P1  An operation on a queue has a Hold until the operation has ended. A Tag has an Interest,
//       because only the poller's thread runs Tags.
//   P2  A poller ends on a plain thread, and the end of the last Hold does not wait for it. The
//       reason: the last Hold may end in a callback, on a thread that gRPC joins when gRPC shuts
//       down.
//   P3  No poller begins to end once the process runs its exit handlers.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include <grpcpp/completion_queue.h>

#include "messages/ids.hpp"

namespace signalbox::actors {

class GrpcPoller {
  class Poller;
  class Ends;

 public:
  /// The tag of an operation on queue().
  class Tag {
   public:
    virtual ~Tag() = default;
    virtual void done(bool ok) = 0;
  };

  /// Keeps the poller's completion queues, and with them gRPC, alive. Each drop-in channel has a
  /// Hold (channel/grpc/call_binder), so its calls need none.
  class Hold {
   public:
    /// Takes a hold on the process's poller. If there is no poller, makes one.
    Hold();

    /// The queue that the poller's thread serves. Its tags are GrpcPoller::Tags; each deletes
    /// itself in done(), when its last operation has ended.
    grpc::CompletionQueue& queue() const;

    /// The queue that threads of gRPC serve. Its tags are grpc_completion_queue_functors; each
    /// deletes itself when it has no more to do.
    grpc_completion_queue* callback_queue() const;

    /// Makes the poller wait inside gRPC for the next 100 ms, so that it serves the completions
    /// that the caller expects without delay.
    void hurry() const;

    /// From now on the threads of gRPC's callback API live at least as long as the poller.
    void keep_callback_threads() const;

   protected:
    std::shared_ptr<Poller> poller_;
  };

  /// The poller's thread serves the sockets while an Interest lives. A Tag may destroy the last
  /// Interest. The thread then ends when the Tag has returned.
  class Interest : public Hold {
   public:
    Interest();
    ~Interest();
    Interest(const Interest&) = delete;
    Interest& operator=(const Interest&) = delete;
  };

  /// Records that the calling thread, which is not the poller's, has just served the sockets.
  static void record_served() {
    const int before = served.load(std::memory_order_relaxed);  // A lost record does no harm.
    if (before < kOften) served.store(before + 1, std::memory_order_relaxed);
  }

  /// The number of the poller's polls since the process began.
  static std::uint64_t looks() { return look_count; }

 private:
  // If the application's threads call record_served() at least this many times between two polls,
  // they serve the sockets "often", and the next poll comes later. A single call now and then does
  // not slow the poller.
  static constexpr int kOften = 5;

  // Records since the last poll. The count stops at kOften: so each call reads the count, and few
  // calls write it.
  static inline std::atomic<int> served = 0;

  static inline std::atomic<std::uint64_t> look_count = 0;
};

/// Converts an instant for gRPC's timers and calls.
gpr_timespec grpc_deadline(Instant deadline);

/// Calls `ended` once, on a thread of gRPC's executor, when the core call has ended. `call` is on
/// the poller's callback_queue(), and has no started operation. `send`: the call's headers are sent
/// first; otherwise only the deadline or a cancellation ends the call. `ended` owns a Hold (P1), or
/// an object that has a Hold.
void watch_end(grpc_call* call, bool send, std::function<void(const absl::Status& status)> ended);

/// Calls `ended` once, on a thread of gRPC's executor, with the reason why `channel` does not
/// connect. gRPC tells the reason only to calls, so this function makes a call, which also has an
/// IDLE channel connect. The call ends within a second. Empty `authority`: the channel's own.
/// `ended` owns the channel.
void watch_failure(grpc_channel* channel,
                   const std::string& authority,
                   std::function<void(const absl::Status& failure)> ended);

}  // namespace signalbox::actors
