// SPDX-License-Identifier: Apache-2.0
//
// CallbackThreads — shared use of the threads of gRPC's callback API, and a safe end of it.
//
//   CallBinder ─▶ GrpcPoller::Hold ─▶ [CallbackThreads] ─▶ a channel that uses the threads
//   the last Hold has ended ─▶ have_come_back() ─▶ ~CallbackThreads, on a plain thread
//
// gRPC 1.51 starts these threads with the first channel that uses the callback API. The destructor
// of the last such channel joins them, under a mutex that every new such channel takes. So two
// things block or end the process. A callback that destroys the last channel makes the thread join
// itself. A callback that makes a channel waits for the mutex while another thread joins.
//
// This object keeps the threads while signalbox's channels come and go. It is destroyed only after
// each thread has returned from signalbox's callbacks.

#pragma once

#include <chrono>
#include <memory>

#include <grpcpp/channel.h>

namespace signalbox::actors {

class CallbackThreads {
 public:
  /// Starts the threads unless they run already.
  CallbackThreads();

  /// Joins the threads if no other channel uses them. Precondition: have_come_back().
  ~CallbackThreads();

  CallbackThreads(const CallbackThreads&) = delete;
  CallbackThreads& operator=(const CallbackThreads&) = delete;

  /// Whether each thread has returned from its callbacks since the first call of this function.
  /// Waits for at most `patience`, and blocks idle threads of the pool for that time: otherwise one
  /// thread would answer for all.
  bool have_come_back(std::chrono::milliseconds patience);

 private:
  class Visits;
  struct Visit;

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::CompletionQueue& queue_;
  const std::shared_ptr<Visits> visits_;
};

}  // namespace signalbox::actors
