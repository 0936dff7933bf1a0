// SPDX-License-Identifier: Apache-2.0
#include "channel/pick/wait_list.hpp"

#include <condition_variable>
#include <utility>
#include <vector>

namespace signalbox::channel {
namespace {

// The list's entry for a thread that is blocked in WaitList::wait().
class Sleeper final : public Waiter {
 public:
  void wake() override {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
    woken_.notify_one();
  }

  /// Blocks until wake(), or returns at once after a wake() since the last sleep(). Returns false
  /// when the deadline has passed without a wake().
  bool sleep(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    const bool was_woken = woken_.wait_until(lock, deadline, [&] { return is_woken_; });
    is_woken_ = false;
    return was_woken;
  }

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
};

}  // namespace

void WaitList::add(std::shared_ptr<Waiter> waiter) {
  const std::lock_guard lock(mutex_);
  const Waiter* const key = waiter.get();
  waiters_.emplace(key, std::move(waiter));
}

void WaitList::remove(const Waiter* waiter) {
  // Declared before the lock, so that the waiter, if this is its last reference, is destroyed after
  // the unlock: its destructor may run the application's code.
  std::shared_ptr<Waiter> removed;
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

bool WaitList::wait(absl::FunctionRef<bool()> is_over,
                    std::chrono::steady_clock::time_point deadline) {
  const auto sleeper = std::make_shared<Sleeper>();
  add(sleeper);
  while (!is_over() && !is_closed() && sleeper->sleep(deadline)) {
  }
  remove(sleeper.get());
  return is_over() && !is_closed();
}

std::size_t WaitList::size() const {
  const std::lock_guard lock(mutex_);
  return waiters_.size();
}

}  // namespace signalbox::channel
