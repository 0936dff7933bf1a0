// SPDX-License-Identifier: Apache-2.0
//
// Waker — runs jobs on a thread of its own, so that they delay neither an actor nor a call. Most
// jobs are the work that follows after a new snapshot was published: queued picks, state watches.
//
//   channel actor, … ─▶ post(job) ─▶ one joinable thread ─▶ job()
//
// Jobs run in the order of post(), one at a time. The destructor runs all posted jobs, then joins.

#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace signalbox::actors {

class Waker {
 public:
  Waker();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  /// Thread-safe. The job does not run inside this call.
  void post(std::function<void()> job);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<std::function<void()>> jobs_;
  std::thread thread_;
};

}  // namespace signalbox::actors
