// SPDX-License-Identifier: Apache-2.0
//
// CallbackThreads — a share in the threads of gRPC's callback API, and a safe end of it.
//
//   CallBinder ─▶ GrpcPoller::Hold ─▶ [CallbackThreads] ─▶ a channel that uses the threads
//   the last Hold has ended ─▶ have_come_back() ─▶ ~CallbackThreads, on a plain thread
//
// gRPC 1.51 starts these threads with the first channel that uses the callback API. The destructor
// of the last such channel joins them, under a mutex that every new such channel takes. So two
// things end or block the process: a callback that destroys the last channel, as the thread joins
// itself; and a callback that makes a channel while another thread joins.
//
// A share keeps the threads while channels of ours come and go, and is given up only after each
// thread has returned from the callbacks of ours.

#pragma once

#include <chrono>
#include <memory>

#include <grpcpp/channel.h>

namespace signalbox::actors {

class CallbackThreads {
 public:
  /// Starts the threads unless they run.
  CallbackThreads();

  /// Joins the threads if no other channel uses them. Precondition: have_come_back().
  ~CallbackThreads();

  CallbackThreads(const CallbackThreads&) = delete;
  CallbackThreads& operator=(const CallbackThreads&) = delete;

  /// Whether each of the threads has come back from its callbacks since the first time that this
  /// was asked. Asks for at most `patience`, and keeps idle threads of the pool busy for so long:
  /// else one of them would answer for all.
  bool have_come_back(std::chrono::milliseconds patience);

 private:
  class Visits;
  struct Visit;

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::CompletionQueue& queue_;
  const std::shared_ptr<Visits> visits_;
};

}  // namespace signalbox::actors
