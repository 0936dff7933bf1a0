// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/retention.hpp"

#include <algorithm>

namespace signalbox::lb {

void Retention::begin(const ChildName& child, LbEffects& effects) {
  const auto [entry, is_new] = timers_.try_emplace(child);
  if (!is_new) return;
  entry->second = TimerId{"deactivation/" + child.str(), ++last_};
  effects.push_back(StartTimer{entry->second, kPriorityRetention});
}

void Retention::end(const ChildName& child, LbEffects& effects) {
  const auto found = timers_.find(child);
  if (found == timers_.end()) return;
  effects.push_back(CancelTimer{found->second});
  timers_.erase(found);
}

std::optional<ChildName> Retention::ran_out(const TimerFired& fired) {
  const auto found =
      std::ranges::find_if(timers_, [&](const auto& entry) { return entry.second == fired.timer; });
  if (found == timers_.end()) return std::nullopt;
  ChildName child = found->first;
  timers_.erase(found);
  return child;
}

}  // namespace signalbox::lb
