// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/picker_pace.hpp"

#include <algorithm>

namespace signalbox::lb {

void PickerPace::need(Need need) {
  need_ = std::max(need_, need);
}

bool PickerPace::awaits_burst() const {
  return need_ == Need::kNow || (need_ == Need::kMayWait && !is_timed_);
}

PickerPace::Order PickerPace::burst_ended(Instant now, Duration cost) {
  cost_ = cost;
  return order(now);
}

PickerPace::Order PickerPace::timer_fired(Instant now) {
  is_timed_ = false;
  return order(now);
}

void PickerPace::built(Instant now) {
  need_ = Need::kNone;
  built_ = now;
}

// Decides whether to build a picker now. A running timer is never cancelled. So it may fire before
// the next picker is due, if another picker was built meanwhile; then another timer is started.
PickerPace::Order PickerPace::order(Instant now) {
  if (need_ == Need::kNone) return {};
  if (need_ == Need::kNow || !built_.has_value()) return {true, std::nullopt};
  const Instant due = *built_ + distance();
  if (now >= due) return {true, std::nullopt};
  if (is_timed_) return {};
  is_timed_ = true;
  return {false, due - now};
}

Duration PickerPace::distance() const {
  const Duration counted = std::min(cost_, kLongestWait / kShare);
  return std::max(interval_, counted * kShare);
}

}  // namespace signalbox::lb
