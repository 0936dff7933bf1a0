// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/priority_watch.hpp"

#include <algorithm>

namespace signalbox::lb {

void PriorityWatch::record(const PriorityConfig& config,
                           std::span<const PriorityChild> children,
                           std::optional<std::size_t> carrying,
                           Instant now,
                           LbEffects& effects) {
  const int active = carrying ? static_cast<int>(*carrying) : -1;
  if (reported_ != active) {
    reported_ = active;
    effects.push_back(Observe{PriorityActive{config.cluster, active}});
  }
  if (!carrying) {
    if (carrier_ && !lost_at_) lost_at_ = now;
    return;
  }
  if (carrier_) {
    if (const auto moved = failover(*carrier_, config, children, *carrying)) {
      effects.push_back(Observe{*moved});
    }
  }
  if (lost_at_) {
    effects.push_back(Observe{FailoverEnded{config.cluster, now - *lost_at_}});
    lost_at_.reset();
  }
  carrier_ = Carrier{config.priorities[*carrying], *carrying, config.priorities};
}

std::optional<FailedOver> PriorityWatch::failover(const Carrier& from,
                                                  const PriorityConfig& config,
                                                  std::span<const PriorityChild> children,
                                                  std::size_t to) {
  if (config.priorities[to] == from.child) return std::nullopt;
  const auto found = std::ranges::find(config.priorities, from.child);
  const bool gone = found == config.priorities.end();
  const std::size_t position =
      gone ? from.position : static_cast<std::size_t>(found - config.priorities.begin());
  if (position == to) return std::nullopt;  // A new child in the same position is no failover.
  const bool up = to < position;
  const auto reason = [&] {
    if (gone || (up && from.order != config.priorities)) return FailoverReason::kReconfigured;
    if (up) return FailoverReason::kRecovered;
    return children[position].state == ConnectivityState::kConnecting ? FailoverReason::kTimedOut
                                                                      : FailoverReason::kFailed;
  }();
  return FailedOver{config.cluster, up ? FailoverDirection::kUp : FailoverDirection::kDown, reason};
}

}  // namespace signalbox::lb
