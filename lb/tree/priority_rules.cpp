// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/priority_rules.hpp"

#include <algorithm>

#include "messages/invariant.hpp"

namespace signalbox::lb {

namespace {

// The first READY standby of the priority `waiting`, which has lost its connections; if there is
// none, `waiting`.
std::size_t ready_standby(std::span<const PriorityChild> children,
                          std::size_t waiting,
                          std::size_t standbys) {
  const std::size_t below = waiting + 1;
  const std::size_t last = below + std::min(standbys, children.size() - below);
  for (std::size_t at = below; at < last; ++at) {
    if (children[at].started && children[at].state == ConnectivityState::kReady) return at;
  }
  return waiting;
}

}  // namespace

PriorityChoice choose_priority(std::span<const PriorityChild> children, std::size_t standbys) {
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
    std::size_t index = index_of(found);
    if (found->has_been_ready && !is_usable(found->state))
      index = ready_standby(children, index, standbys);
    const PriorityChild& chosen = children[index];
    const std::size_t considered = index + 1;
    if (!chosen.started || !is_usable(chosen.state)) return {index, considered, false, 0};
    return {index, considered, true, std::min(standbys, children.size() - considered)};
  }
  if (const auto found = std::ranges::find_if(children, connecting); found != children.end()) {
    return {index_of(found), children.size(), false, 0};
  }
  return {children.size() - 1, children.size(), false, 0};
}

}  // namespace signalbox::lb
