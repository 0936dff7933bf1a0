// SPDX-License-Identifier: Apache-2.0
#include "actors/waker.hpp"

#include <utility>

namespace signalbox::actors {

Waker::Waker() : thread_([this] { run(); }) {}

Waker::~Waker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Waker::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void Waker::run() {
  while (true) {
    std::vector<std::function<void()>> jobs;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      jobs.swap(jobs_);
      if (jobs.empty()) return;
    }
    for (const auto& job : jobs)
      job();
  }
}

}  // namespace signalbox::actors
