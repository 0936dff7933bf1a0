// SPDX-License-Identifier: Apache-2.0
#include "tests/stress/canceller.hpp"

#include <utility>

namespace signalbox::stress {

Canceller::Canceller() : thread_([this] { run(); }) {}

Canceller::~Canceller() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Canceller::cancel_at(Clock::time_point when,
                          std::shared_ptr<grpc::ClientContext> context,
                          bool keep) {
  std::weak_ptr<grpc::ClientContext> weak = context;
  if (!keep) context = nullptr;
  const std::lock_guard lock(mutex_);
  due_.emplace(when, [kept = std::move(context), weak = std::move(weak)] { return weak.lock(); });
  changed_.notify_all();
}

void Canceller::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (due_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto first = due_.begin();
    if (first->first > Clock::now()) {
      changed_.wait_until(lock, first->first);
      continue;
    }
    {
      // `due` may be the context's last owner; the context must be destroyed without the lock.
      const auto due = due_.extract(first);
      lock.unlock();
      if (const auto context = due.mapped()()) context->TryCancel();
    }
    lock.lock();
  }
}

}  // namespace signalbox::stress
