// SPDX-License-Identifier: Apache-2.0
//
// Worker — the thread that makes the answers of the gRPC admin services.
//
//   callback of gRPC ─▶ post(job) ─▶ [queue of kMaxJobs] ─▶ job: Runtime::status, Runtime::dump
//
// Runtime::dump blocks, and a callback of gRPC must not block. The worker has one thread, so it
// makes one answer at a time, however many requests wait.

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "messages/admin_limit.hpp"

namespace signalbox::channel {

class Worker {
 public:
  static constexpr std::size_t kMaxJobs = 64;

  explicit Worker(LimitHit hit);
  /// Drops the jobs that wait, and waits for the job that is running.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Adds a job. False: kMaxJobs jobs wait already, and this job is dropped.
  bool post(std::function<void()> job);

 private:
  void run();

  const LimitHit hit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace signalbox::channel
