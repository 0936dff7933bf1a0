// SPDX-License-Identifier: Apache-2.0
//
// An open loop: async calls at their times, whether earlier ones have been answered or not.
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
  std::string cluster;  ///< Of the backend that answered.
  std::uint32_t pid = 0;
  std::string error;  ///< Why, where it is not `ok`.
};

class OpenLoop {
 public:
  struct Options {
    double rate = 1000;  ///< Calls a second.
    /// Keeps its backend busy for so long: one call in `work_every`.
    std::chrono::microseconds work{0};
    std::uint64_t work_every = 2;
  };

  using OnFinished = std::function<void(const AnsweredCall&)>;

  OpenLoop(Stub& stub, Options options, OnFinished on_finished);
  /// Sends no more and waits for the answers that are due.
  ~OpenLoop();
  OpenLoop(const OpenLoop&) = delete;
  OpenLoop& operator=(const OpenLoop&) = delete;

  /// The CPU seconds spent on waiting for the time of the next call. They are no cost of calls.
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
  std::uint64_t waits_ = 0;  ///< The sender's.
  std::atomic<double> waiting_cpu_seconds_ = 0;
  std::thread taker_;
  std::thread sender_;
};

}  // namespace signalbox::bench
