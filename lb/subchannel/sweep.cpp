// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel/sweep.hpp"

#include <algorithm>
#include <utility>

namespace signalbox::lb {

SweepEffects SweepCore::step(const SweepEvent& event, Instant now) {
  SweepEffects effects;
  std::visit([&](const auto& it) { on(it, now, effects); }, event);
  return effects;
}

// Ignored while the map sweeps: the map's SweepDone will be computed with the new timeout.
void SweepCore::on(const IdleTimeoutSet& event, Instant now, SweepEffects& effects) {
  if (is_sweeping_) return;
  const Duration pause = std::clamp(event.idle_timeout, kShortestPause, kLongestPause);
  if (!due_ || now + pause < *due_) wait(pause, now, effects);
}

void SweepCore::on(const SweepDone& event, Instant now, SweepEffects& effects) {
  if (!is_sweeping_) return;
  is_sweeping_ = false;
  const Instant due = std::clamp(event.next_due, last_ + kShortestPause, last_ + kLongestPause);
  wait(std::max(due - now, Duration::zero()), now, effects);
}

void SweepCore::on(const TimerFired& event, Instant now, SweepEffects& effects) {
  if (!due_ || event.timer.generation != timers_) return;
  due_.reset();
  is_sweeping_ = true;
  last_ = now;
  effects.emplace_back(std::in_place_type<Sweep>);
}

void SweepCore::wait(Duration pause, Instant now, SweepEffects& effects) {
  due_ = now + pause;
  effects.push_back(StartTimer{TimerId{"sweep", ++timers_}, pause});
}

}  // namespace signalbox::lb
