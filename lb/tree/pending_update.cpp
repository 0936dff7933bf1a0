// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/pending_update.hpp"

#include <utility>

namespace signalbox::lb {

bool PendingUpdate::begin_in_turn(const ConfigUpdated& update) {
  const bool begins = !std::exchange(is_pending_, true);
  if (!begins) waiting_ = update;
  return begins;
}

std::optional<ConfigUpdated> PendingUpdate::begin_waiting() {
  is_pending_ = waiting_.has_value();
  return std::exchange(waiting_, std::nullopt);
}

bool PendingUpdate::ended(const ChildSet& children, Duration patience, LbEffects& effects) {
  if (!is_pending_) return false;
  if (children.reached() == children.generation()) {
    if (timer_) effects.push_back(CancelTimer{*timer_});
    timer_.reset();
    is_pending_ = false;
    return true;
  }
  if (!timer_) {
    timer_ = TimerId{"answers", ++timers_};
    effects.push_back(StartTimer{*timer_, patience});
  }
  return false;
}

bool PendingUpdate::ran_out(const TimerFired& fired) {
  if (timer_ != fired.timer) return false;
  timer_.reset();
  return true;
}

}  // namespace signalbox::lb
