// SPDX-License-Identifier: Apache-2.0
//
// CallbackThreads — keeps the threads of gRPC's callback API alive, and ends them safely.
//
//   CallBinder ─▶ GrpcPoller::Hold ─▶ [CallbackThreads] ─▶ a channel that uses the threads
//   the last Hold has ended ─▶ have_come_back() ─▶ ~CallbackThreads, on a plain thread
//
// gRPC 1.51 starts these threads with the first channel that uses the callback API. The destructor
// of the last such channel joins them, while it holds a mutex that every new such channel takes.
// Two cases therefore block or end the process. First: a callback destroys the last channel, so
// that its thread joins itself. Second: a callback makes a channel and waits for the mutex, while
// the holder of the mutex waits for the callback's thread.
//
// This object keeps the threads alive while signalbox's channels come and go. It is destroyed only
// after each thread has returned from signalbox's callbacks.

#pragma once

#include <chrono>
#include <memory>

#include <grpcpp/channel.h>

namespace signalbox::actors {

class CallbackThreads {
 public:
  /// Starts the threads unless they run already, and keeps them alive.
  CallbackThreads();

  /// Joins the threads if no other channel uses them. Precondition: have_come_back() has returned
  /// true.
  ~CallbackThreads();

  CallbackThreads(const CallbackThreads&) = delete;
  CallbackThreads& operator=(const CallbackThreads&) = delete;

  /// Returns whether each thread has been outside of callbacks at least once since the first call
  /// of this function. Waits for at most `patience`. While it waits, it blocks the threads that it
  /// has found, because otherwise one idle thread could be found again and again.
  bool have_come_back(std::chrono::milliseconds patience);

 private:
  class Visits;
  struct Visit;

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::CompletionQueue& queue_;
  const std::shared_ptr<Visits> visits_;
};

}  // namespace signalbox::actors
