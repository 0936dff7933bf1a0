// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/priority_watch.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace signalbox::lb {

void PriorityWatch::record(const PriorityConfig& config,
                           std::vector<PrioritySeen> seen,
                           std::optional<std::size_t> carrying,
                           Instant now,
                           LbEffects& effects) {
  PrioritiesSeen fresh{config.cluster, config.aggregate, std::move(seen), carrying};
  const int active = carrying ? static_cast<int>(*carrying) : -1;
  if (reported_ != active) {
    reported_ = active;
    effects.push_back(Observe{PriorityActive{config.cluster, active}});
  }
  std::optional<FailedOver> moved;
  if (carrying && carrier_) moved = failover(*carrier_, config, fresh.priorities, *carrying);
  tell_move(fresh, moved ? std::optional(moved->reason) : std::nullopt, now, effects);
  if (fresh != told_) {
    told_ = fresh;
    effects.push_back(Observe{std::move(fresh)});
  }
  if (!carrying) {
    if (carrier_ && !lost_at_) lost_at_ = now;
    return;
  }
  if (moved) effects.push_back(Observe{*moved});
  if (lost_at_) {
    effects.push_back(Observe{FailoverEnded{config.cluster, now - *lost_at_}});
    lost_at_.reset();
  }
  carrier_ = Carrier{config.priorities[*carrying], *carrying, config.priorities};
}

// Reports PriorityMoved if the index of the active priority has changed since the last report.
// "None is active" counts as a value, so a change from none or to none is reported, too.
// `failover`: why calls moved from the priority that last carried calls to another one; nullopt:
// calls did not move, no priority carries or carried calls, or a new child took the same position.
void PriorityWatch::tell_move(const PrioritiesSeen& now,
                              std::optional<FailoverReason> failover,
                              Instant at,
                              LbEffects& effects) const {
  if (now.active == told_.active) return;
  PriorityMoved move{.cluster = now.cluster, .aggregate = now.aggregate, .at = at};
  move.from = told_.active;
  move.to = now.active;
  if (move.from) move.from_name = told_.priorities[*move.from].name;
  if (move.to) move.to_name = now.priorities[*move.to].name;
  move.reason = [&] {
    if (!move.to) return PriorityChangeReason::kLost;
    if (!carrier_) return PriorityChangeReason::kFirst;
    if (!failover)
      return move.from ? PriorityChangeReason::kReconfigured : PriorityChangeReason::kRecovered;
    switch (*failover) {
      case FailoverReason::kFailed:
        return PriorityChangeReason::kFailed;
      case FailoverReason::kTimedOut:
        return PriorityChangeReason::kTimedOut;
      case FailoverReason::kRecovered:
        return PriorityChangeReason::kRecovered;
      case FailoverReason::kReconfigured:
        break;
    }
    return PriorityChangeReason::kReconfigured;
  }();
  // The priority that the calls left. If no priority carried calls for a time, it is the last one
  // that carried calls before that time.
  const ChildName& left = carrier_ ? carrier_->child : move.from_name;
  const auto found = std::ranges::find(now.priorities, left, &PrioritySeen::name);
  const bool is_left = found != now.priorities.end() && left != move.to_name;
  if (is_left) {
    move.details = std::string(found->status.message());
    if (found->window_ends) move.window_left = *found->window_ends - at;
  }
  if (lost_at_) move.without = at - *lost_at_;
  effects.push_back(Observe{std::move(move)});
}

std::optional<FailedOver> PriorityWatch::failover(const Carrier& from,
                                                  const PriorityConfig& config,
                                                  const std::vector<PrioritySeen>& seen,
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
    // If the failover window of the priority that the calls left is still open, that priority lost
    // its connections, and the calls went to a standby: kFailed.
    const PrioritySeen& left = seen[position];
    const bool is_late = left.state == ConnectivityState::kConnecting && !left.window_ends;
    return is_late ? FailoverReason::kTimedOut : FailoverReason::kFailed;
  }();
  return FailedOver{config.cluster, up ? FailoverDirection::kUp : FailoverDirection::kDown, reason};
}

}  // namespace signalbox::lb
