// SPDX-License-Identifier: Apache-2.0
#include "channel/grpc/back_off.hpp"

#include <utility>

#include <grpc/support/time.h>

namespace signalbox::channel {

std::shared_ptr<BackOff> BackOff::start(WaitList& waiting,
                                        Duration delay,
                                        std::function<void()> over) {
  auto self = std::make_shared<BackOff>(waiting, std::move(over));
  waiting.add(self);
  self->set(delay);
  return self;
}

void BackOff::set(Duration delay) {
  const std::lock_guard lock(mutex_);
  const gpr_timespec until =
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(delay.count(), GPR_TIMESPAN));
  // The alarm keeps the function object even after it has run. The function object owns this
  // BackOff, which owns the alarm. To break that circle, the function object gives up its reference
  // when it runs.
  alarm_.Set(until, [kept = shared_from_this()](bool) mutable {
    const auto self = std::move(kept);
    self->waiting_.remove(self.get());
    self->over_();
  });
  // If the list was closed before this object was added, or before the alarm was set, wake() has
  // not cancelled the alarm. So the alarm is cancelled here.
  if (waiting_.is_closed()) alarm_.Cancel();
}

void BackOff::cancel() {
  const std::lock_guard lock(mutex_);
  alarm_.Cancel();
}

void BackOff::wake() {
  if (waiting_.is_closed()) cancel();
}

}  // namespace signalbox::channel
