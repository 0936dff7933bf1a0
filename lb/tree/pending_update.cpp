// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/pending_update.hpp"

namespace signalbox::lb {

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
