// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/warming_petiole.hpp"

#include <utility>

#include "lb/health/slow_start.hpp"

namespace signalbox::lb {
namespace {

constexpr char kWarmthTimer[] = "slow start";

}  // namespace

bool WarmingPetiole::set_slow_start(const std::optional<SlowStart>& rules) {
  return std::exchange(rules_, rules) != rules;
}

const Warmth& WarmingPetiole::warm_up() {
  warmth_ = Warmth(rules_, endpoints(), now());
  return warmth_;
}

bool WarmingPetiole::fire(const TimerId& timer) {
  if (timer.name != kWarmthTimer) return false;
  if (timer.generation == timer_) is_timed_ = false;
  const bool is_ready = state() == ConnectivityState::kReady;
  if (is_ready && Warmth(rules_, endpoints(), now()) != warmth_) want_picker();
  return true;
}

void WarmingPetiole::follow_up(LbEffects& effects) {
  if (is_timed_ || !Warmth::is_possible(rules_, endpoints(), now())) return;
  is_timed_ = true;
  effects.push_back(StartTimer{{kWarmthTimer, ++timer_}, slow_start_step(*rules_)});
}

}  // namespace signalbox::lb
