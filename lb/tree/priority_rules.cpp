// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/priority_rules.hpp"

#include <algorithm>

#include "messages/invariant.hpp"

namespace signalbox::lb {

PriorityChoice choose_priority(std::span<const PriorityChild> children) {
  SIGNALBOX_INVARIANT(!children.empty(), "an empty priority list is answered before choosing");
  const auto index_of = [&](const auto found) {
    return static_cast<std::size_t>(found - children.begin());
  };
  const auto worth_using = [](const PriorityChild& child) {
    return !child.started || is_usable(child.state) || child.failover_pending;
  };
  const auto connecting = [](const PriorityChild& child) {
    return child.state == ConnectivityState::kConnecting;
  };
  if (const auto found = std::ranges::find_if(children, worth_using); found != children.end()) {
    return {index_of(found), index_of(found) + 1, found->started && is_usable(found->state)};
  }
  if (const auto found = std::ranges::find_if(children, connecting); found != children.end()) {
    return {index_of(found), children.size(), false};
  }
  return {children.size() - 1, children.size(), false};
}

}  // namespace signalbox::lb
