// SPDX-License-Identifier: Apache-2.0
//
// OpenLoop — sends asynchronous calls at a fixed rate, whether or not earlier calls have been
// answered.
//
//   schedule (rate) ─▶ [OpenLoop: a thread that sends] ─▶ stub ─▶ CompletionQueue
//                      [a thread that takes answers] ◀─┘ ─▶ on_finished, one call at a time

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include <grpcpp/completion_queue.h>
#include <grpcpp/support/status.h>

#include "tests/bench/side.hpp"

namespace signalbox::bench {

struct AnsweredCall {
  std::chrono::steady_clock::time_point due, ended;
  bool ok = false;
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string cluster;  ///< The cluster of the backend that answered.
  std::uint32_t pid = 0;
  std::string error;  ///< The error text of a failed call.
};

class OpenLoop {
 public:
  struct Options {
    double rate = 1000;  ///< In calls per second.
    /// The time for which one call in `work_every` keeps its backend busy.
    std::chrono::microseconds work{0};
    std::uint64_t work_every = 2;
  };

  using OnFinished = std::function<void(const AnsweredCall&)>;

  OpenLoop(Stub& stub, Options options, OnFinished on_finished);
  /// Stops sending, and waits for the answers to the calls that were sent.
  ~OpenLoop();
  OpenLoop(const OpenLoop&) = delete;
  OpenLoop& operator=(const OpenLoop&) = delete;

  /// The CPU time spent on waiting until the next call is due, in seconds. It is not part of the
  /// cost of calls, so measurements subtract it.
  double waiting_cpu_seconds() const { return waiting_cpu_seconds_; }

 private:
  struct Call;

  void send_all();
  /// False: no further call is to be sent.
  bool wait_until(std::chrono::steady_clock::time_point due);
  void send(std::chrono::steady_clock::time_point due, std::chrono::microseconds work);
  void take_answers();

  Stub& stub_;
  const Options options_;
  const OnFinished on_finished_;
  grpc::CompletionQueue queue_;

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::uint64_t waits_ = 0;  ///< Used only by the thread that sends.
  std::atomic<double> waiting_cpu_seconds_ = 0;
  std::thread taker_;
  std::thread sender_;
};

}  // namespace signalbox::bench
