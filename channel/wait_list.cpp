// SPDX-License-Identifier: Apache-2.0
#include "channel/wait_list.hpp"

#include <utility>
#include <vector>

namespace signalbox::channel {

void WaitList::add(std::shared_ptr<Waiter> waiter) {
  const std::lock_guard lock(mutex_);
  const Waiter* const key = waiter.get();
  waiters_.emplace(key, std::move(waiter));
}

void WaitList::remove(const Waiter* waiter) {
  std::shared_ptr<Waiter> removed;  // May be the last reference: it dies after the lock is gone.
  const std::lock_guard lock(mutex_);
  const auto found = waiters_.find(waiter);
  if (found == waiters_.end()) return;
  removed = std::move(found->second);
  waiters_.erase(found);
}

void WaitList::publish() {
  std::vector<std::shared_ptr<Waiter>> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.reserve(waiters_.size());
    for (const auto& [key, waiter] : waiters_)
      waiting.push_back(waiter);
  }
  for (const auto& waiter : waiting)
    waiter->wake();
}

void WaitList::close() {
  closed_.store(true, std::memory_order_release);
  publish();
}

std::size_t WaitList::size() const {
  const std::lock_guard lock(mutex_);
  return waiters_.size();
}

}  // namespace signalbox::channel
