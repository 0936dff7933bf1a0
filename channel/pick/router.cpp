// SPDX-License-Identifier: Apache-2.0
#include "signalbox/router.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <utility>

#include <grpcpp/alarm.h>

#include "actors/io/end_mark.hpp"
#include "actors/io/grpc_poller.hpp"
#include "channel/pick/waiting_pick.hpp"
#include "channel/target.hpp"

namespace signalbox {
namespace {

// The waiter of on_change().
class Change final : public channel::OnceWaiter {
 public:
  Change(std::shared_ptr<channel::WaitList> list,
         lb::Router router,
         const Pick& pick,
         std::function<void()> changed)
      : OnceWaiter(std::move(list)),
        router_(std::move(router)),
        seen_(pick.sequence()),
        is_delayed_(channel::is_delayed(pick)),
        changed_(std::move(changed)) {}

  void begin(const Pick& pick) {
    wait();
    if (!is_delayed_) return;
    alarm_.Set(actors::grpc_deadline(pick.due()), [weak = weak_from_this()](bool is_over) {
      const auto self = weak.lock();
      if (is_over && self != nullptr) self->end();
    });
  }

 private:
  bool is_over() override {
    return list().is_closed() || (!is_delayed_ && router_.sequence() != seen_);
  }

  void call() override { changed_(); }

  const lb::Router router_;
  const std::uint64_t seen_;
  const bool is_delayed_;
  const std::function<void()> changed_;
  grpc::Alarm alarm_;
};

// The waiter of pick_async(). The time limit of the wait is the caller's deadline or the route's
// timeout, if there is one. If a filter delays the call, the wait also has an earliest end.
class TimedPick final : public channel::WaitingPick {
 public:
  template <typename... Args>
  TimedPick(Instant begun, Instant deadline, Args&&... args)
      : WaitingPick(std::forward<Args>(args)...), begun_(begun), deadline_(deadline) {}

  void limit(const Pick& pick) override {
    const auto until = channel::limited(deadline_, begun_, pick);
    const bool is_delayed = channel::is_delayed(pick);
    // The timer uses another clock than the delay. The extra millisecond makes sure that the timer
    // does not fire before the delay is over. After a timer that fires too early, only a
    // publication would wake the call.
    const auto due = pick.due() + std::chrono::milliseconds(1);
    // From the first timer on, the timer's thread may pass the pick to the application, and so move
    // it away. So `pick` is not read below this line.
    if (until != Instant::max()) at(until, &OnceWaiter::end);
    if (is_delayed) at(due, &OnceWaiter::wake);
  }

 private:
  void at(Instant instant, void (OnceWaiter::*act)()) {
    alarms_.emplace_back().Set(actors::grpc_deadline(instant),
                               [weak = weak_from_this(), act](bool is_over) {
                                 const auto self = weak.lock();
                                 if (is_over && self != nullptr) (self.get()->*act)();
                               });
  }

  const Instant begun_;
  const Instant deadline_;
  std::deque<grpc::Alarm> alarms_;
};

// A pointer to the target's wait list that owns the whole target: a wait must keep the target
// alive, because only a live target gets new snapshots, which end the wait.
std::shared_ptr<channel::WaitList> list_of(const std::shared_ptr<channel::Target>& target) {
  return {target, target->waiting().get()};
}

// The counters of the calls to the pick's cluster; null: the call was not routed, or calls are not
// counted.
const CallStats* stats_of(const Pick& pick) {
  return pick.cluster() == nullptr ? nullptr : pick.stats();
}

}  // namespace

// Successive seeds of a thread differ by a constant (2^64 divided by the golden ratio). That is
// random enough, because draw() turns each seed into evenly spread numbers.
[[gnu::hot]] std::uint64_t next_seed() {
  thread_local std::uint64_t seed = [] {
    std::random_device device;
    return (std::uint64_t{device()} << 32U) | device();
  }();
  seed += 0x9e3779b97f4a7c15ULL;
  return seed;
}

bool Registration::cancel() const {
  const auto waiter = waiter_.lock();
  return waiter != nullptr && waiter->cancel();
}

Router::Router(std::shared_ptr<channel::Target> target)
    : target_(std::move(target)), router_(target_->router()) {}

Pick Router::pick(const CallArgs& call) const {
  Pick pick = channel::pick(router_, call);
  if (actors::EndMark::is_any_set()) [[unlikely]]
    channel::pass_over_lost(router_, pick, call);
  return pick;
}

void Router::repick(Pick& pick, const CallArgs& call) const {
  channel::repick(router_, pick, call);
}

Explanation Router::explain(const CallArgs& call) const {
  return router_.explain(call, std::chrono::time_point_cast<Duration>(Clock::now()));
}

bool Router::wait(const Pick& pick, std::chrono::steady_clock::time_point deadline) const {
  if (channel::is_delayed(pick)) deadline = std::min(deadline, pick.due());
  return target_->waiting()->wait([&] { return channel::may_repick(router_, pick); }, deadline);
}

Registration Router::on_change(const Pick& pick, std::function<void()> changed) const {
  if (changed == nullptr) return {};
  const auto waiter = std::make_shared<Change>(list_of(target_), router_, pick, std::move(changed));
  waiter->begin(pick);
  return Registration(waiter);
}

Pick Router::pick_until(const CallArgs& call, Clock::time_point deadline, OnFail on_fail) const {
  Pick pick = channel::pick(router_, call);
  channel::pass_over_lost(router_, pick, call);
  const CallerStats* const callers = target_->callers().get();
  if (!channel::has_to_wait(pick, on_fail)) {
    channel::count_unserved(pick, callers);
    return pick;
  }
  const auto begun = Clock::now();
  const auto trace = channel::TracedCall::begin(target_->tracing(), call.path, nullptr, begun);
  channel::PickWait waited;
  const auto goes_on = [&](Instant now) {
    waited.goes_on(channel::delay_type(pick), now, callers);
    if (trace != nullptr) channel::trace_wait(*trace, pick, now);
  };
  goes_on(begun);
  while (channel::has_to_wait(pick, on_fail) &&
         wait(pick, channel::limited(deadline, begun, pick))) {
    repick(pick, call);
    if (channel::has_to_wait(pick, on_fail)) goes_on(Clock::now());
  }
  const auto ended = Clock::now();
  waited.ended(ended, callers);
  // If the runtime has ended, the target has a last snapshot, which fails every pick and says so.
  if (target_->waiting()->is_closed() && channel::has_to_wait(pick, on_fail))
    channel::repick_last(router_, pick, call);
  if (trace != nullptr) channel::trace_end(*trace, pick, ended);
  channel::count_unserved(pick, callers);
  return pick;
}

Registration Router::pick_async(const CallArgs& call,
                                Clock::time_point deadline,
                                std::function<void(Pick)> picked,
                                OnFail on_fail) const {
  Pick pick = channel::pick(router_, call);
  if (picked == nullptr) return {};
  channel::pass_over_lost(router_, pick, call);
  if (!channel::has_to_wait(pick, on_fail)) {
    channel::count_unserved(pick, target_->callers().get());
    picked(std::move(pick));
    return {};
  }
  const auto begun = Clock::now();
  const auto waiting = std::make_shared<TimedPick>(begun,
                                                   deadline,
                                                   list_of(target_),
                                                   router_,
                                                   target_->callers(),
                                                   call,
                                                   on_fail,
                                                   std::move(pick),
                                                   std::move(picked));
  waiting->trace(channel::TracedCall::begin(target_->tracing(), call.path, nullptr, begun));
  waiting->begin();
  return Registration(waiting);
}

void Router::started(const Pick& pick) const {
  if (const CallStats* const stats = stats_of(pick)) stats->count_started();
}

void Router::finished(Pick& pick, int code, const LoadReport* load_report) const {
  const CallStats* const stats = stats_of(pick);
  if (load_report != nullptr && pick.wants_load()) {
    if (stats != nullptr) {
      stats->count_load_report(has_load_values_only(*load_report) ? LoadReportResult::kTaken
                                                                  : LoadReportResult::kPartly);
    }
    pick.end(code, load_report, Clock::now());
  } else {
    pick.end(code);
  }
  if (stats != nullptr) stats->count_completed(code);
  if (const auto& callers = target_->callers()) callers->count_call(code);
}

void Router::unserved(const Pick& pick) const {
  const CallerStats* const callers = target_->callers().get();
  if (callers == nullptr) return;
  if (pick.outcome() != PickOutcome::kComplete) return channel::count_unserved(pick, callers);
  callers->count_call(static_cast<int>(absl::StatusCode::kUnavailable));
}

}  // namespace signalbox
