// SPDX-License-Identifier: Apache-2.0
//
// Worker — the thread that makes the answers of the gRPC admin services.
//
//   callback of gRPC ─▶ post(job) ─▶ [queue of kMaxJobs] ─▶ job: Runtime::status, Runtime::dump
//
// Runtime::dump blocks, and a callback of gRPC must not. One answer is made at a time, so that many
// requests cost no more memory and CPU than one.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace signalbox::channel {

class Worker {
 public:
  static constexpr std::size_t kMaxJobs = 64;

  Worker();
  /// Drops the jobs that wait.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// False: kMaxJobs wait already, and the job is dropped.
  bool post(std::function<void()> job);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace signalbox::channel
