// SPDX-License-Identifier: Apache-2.0
#include "signalbox/router.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "channel/target.hpp"

namespace signalbox {
namespace {

// Wakes at most once, and leaves the list then; who adds it looks at the sequence again
// (channel/wait_list.hpp).
class OnceWaiter final : public channel::Waiter {
 public:
  OnceWaiter(std::weak_ptr<channel::WaitList> list, std::function<void()> changed)
      : list_(std::move(list)), changed_(std::move(changed)) {}

  void wake() override {
    if (woken_.exchange(true)) return;
    if (const auto list = list_.lock()) list->remove(this);
    changed_();
  }

 private:
  const std::weak_ptr<channel::WaitList> list_;
  const std::function<void()> changed_;
  std::atomic<bool> woken_{false};
};

}  // namespace

Router::Router(std::shared_ptr<channel::Target> target)
    : target_(std::move(target)), router_(target_->router()) {}

bool Router::wait(const Pick& pick, std::chrono::steady_clock::time_point deadline) const {
  struct Sleeper final : channel::Waiter {
    void wake() override {
      const std::lock_guard lock(mutex);
      woken = true;
      changed.notify_all();
    }

    std::mutex mutex;
    std::condition_variable changed;
    bool woken = false;
  };

  const auto newer = [&] { return router_.sequence() != pick.sequence(); };
  channel::WaitList& waiting = *target_->waiting();
  const auto sleeper = std::make_shared<Sleeper>();
  waiting.add(sleeper);
  {
    std::unique_lock lock(sleeper->mutex);
    while (!newer() && !waiting.is_closed()) {
      const bool woken =
          sleeper->changed.wait_until(lock, deadline, [&] { return sleeper->woken; });
      sleeper->woken = false;
      if (!woken) break;
    }
  }
  waiting.remove(sleeper.get());
  return newer() && !waiting.is_closed();
}

void Router::on_change(const Pick& pick, std::function<void()> changed) const {
  if (changed == nullptr) return;
  const auto waiter = std::make_shared<OnceWaiter>(target_->waiting(), std::move(changed));
  target_->waiting()->add(waiter);
  if (router_.sequence() != pick.sequence() || target_->waiting()->is_closed()) waiter->wake();
}

void Router::started(const Pick& pick) const {
  if (pick.cluster() != nullptr) pick.cluster()->stats().count_started();
}

void Router::finished(Pick& pick, int code) const {
  pick.end(code);
  if (pick.cluster() != nullptr) pick.cluster()->stats().count_completed(code);
}

}  // namespace signalbox
