// SPDX-License-Identifier: Apache-2.0
#include "signalbox/router.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

#include <grpcpp/alarm.h>

#include "channel/target.hpp"

namespace signalbox {
namespace {

bool is_delayed(const Pick& pick) {
  return pick.delay() > Duration::zero();
}

// Wakes at most once, and leaves the list then; who adds it looks at the sequence again
// (channel/wait_list.hpp).
class OnceWaiter final : public channel::Waiter, public std::enable_shared_from_this<OnceWaiter> {
 public:
  // `is_timed`: nothing but wake_at() and the end of the runtime wakes it.
  OnceWaiter(std::weak_ptr<channel::WaitList> list, std::function<void()> changed, bool is_timed)
      : list_(std::move(list)), changed_(std::move(changed)), is_timed_(is_timed) {}

  // Precondition: it is in the list.
  void wake_at(Instant due) {
    const Duration rest = std::max(due - std::chrono::steady_clock::now(), Duration::zero());
    const gpr_timespec when =
        gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_nanos(rest.count(), GPR_TIMESPAN));
    alarm_.Set(when, [weak = weak_from_this()](bool is_over) {
      const auto self = weak.lock();
      if (is_over && self != nullptr) self->fire();
    });
  }

  void wake() override {
    const auto list = list_.lock();
    if (!is_timed_ || list == nullptr || list->is_closed()) fire();
  }

 private:
  void fire() {
    if (woken_.exchange(true)) return;
    if (const auto list = list_.lock()) list->remove(this);
    changed_();
  }

  const std::weak_ptr<channel::WaitList> list_;
  const std::function<void()> changed_;
  const bool is_timed_;
  grpc::Alarm alarm_;
  std::atomic<bool> woken_{false};
};

}  // namespace

Router::Router(std::shared_ptr<channel::Target> target)
    : target_(std::move(target)), router_(target_->router()) {}

void Router::repick(Pick& pick, const CallArgs& call) const {
  if (is_delayed(pick)) {
    if (std::chrono::steady_clock::now() < pick.due()) return;
    pick.end_delay();
  }
  router_.repick(pick, call);
  if (is_delayed(pick)) pick.begin_delay(std::chrono::steady_clock::now());
}

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

  const auto may_repick = [&] {
    return is_delayed(pick) ? std::chrono::steady_clock::now() >= pick.due()
                            : router_.sequence() != pick.sequence();
  };
  if (is_delayed(pick)) deadline = std::min(deadline, pick.due());
  channel::WaitList& waiting = *target_->waiting();
  const auto sleeper = std::make_shared<Sleeper>();
  waiting.add(sleeper);
  {
    std::unique_lock lock(sleeper->mutex);
    while (!may_repick() && !waiting.is_closed()) {
      const bool woken =
          sleeper->changed.wait_until(lock, deadline, [&] { return sleeper->woken; });
      sleeper->woken = false;
      if (!woken) break;
    }
  }
  waiting.remove(sleeper.get());
  return may_repick() && !waiting.is_closed();
}

void Router::on_change(const Pick& pick, std::function<void()> changed) const {
  if (changed == nullptr) return;
  const auto waiter =
      std::make_shared<OnceWaiter>(target_->waiting(), std::move(changed), is_delayed(pick));
  target_->waiting()->add(waiter);
  if (is_delayed(pick)) waiter->wake_at(pick.due());
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
