// SPDX-License-Identifier: Apache-2.0
#include "channel/services/worker.hpp"

#include <utility>

namespace signalbox::channel {

Worker::Worker(LimitHit hit) : hit_(std::move(hit)), thread_([this] { run(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool Worker::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() < kMaxJobs) {
      jobs_.push_back(std::move(job));
      changed_.notify_one();
      return true;
    }
  }
  hit_(AdminLimit::kGrpcRequests);
  return false;
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
}

}  // namespace signalbox::channel
