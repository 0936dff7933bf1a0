// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/warming_petiole.hpp"

#include <utility>

#include "lb/health/slow_start.hpp"

namespace signalbox::lb {
namespace {

constexpr char kWarmthTimer[] = "slow start";

}  // namespace

bool WarmingPetiole::set_slow_start(const std::optional<SlowStart>& rules) {
  if (rules == rules_) return false;
  rules_ = rules;
  next_ = {};
  is_timed_ = false;  // The running timer is ignored: its step may be longer than the new window.
  return true;
}

const Warmth& WarmingPetiole::warm_up() {
  Warmth next = std::exchange(next_, {});
  warmth_ = next.is_of(endpoints()) ? std::move(next) : Warmth(rules_, endpoints(), now());
  return warmth_;
}

bool WarmingPetiole::fire(const TimerId& timer) {
  if (timer.name != kWarmthTimer) return false;
  if (timer.generation != timer_ || !std::exchange(is_timed_, false)) return true;
  if (state() != ConnectivityState::kReady) return true;
  Warmth next(rules_, endpoints(), now());
  if (next == warmth_) return true;
  next_ = std::move(next);
  want_picker();
  return true;
}

void WarmingPetiole::follow_up(LbEffects& effects) {
  if (is_timed_ || !Warmth::is_possible(rules_, endpoints(), now())) return;
  is_timed_ = true;
  effects.push_back(StartTimer{{kWarmthTimer, ++timer_}, slow_start_step(*rules_)});
}

}  // namespace signalbox::lb
