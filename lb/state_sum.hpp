// SPDX-License-Identifier: Apache-2.0
//
// state_sum — the state of a policy, from the states of its children.
//
//   states of children ─▶ [StateCounts] ─▶ sum_of ─▶ Publish::state

#pragma once

#include <array>
#include <cstddef>

#include "messages/connectivity.hpp"

namespace signalbox::lb {

/// The number of children in each state, by index_of(state).
using StateCounts = std::array<std::size_t, 4>;

constexpr std::size_t index_of(ConnectivityState state) {
  return static_cast<std::size_t>(state);
}

/// READY if any child is READY, else CONNECTING if any is, else IDLE if any is, else
/// TRANSIENT_FAILURE.
constexpr ConnectivityState sum_of(const StateCounts& counts) {
  for (const auto state :
       {ConnectivityState::kReady, ConnectivityState::kConnecting, ConnectivityState::kIdle}) {
    if (counts[index_of(state)] != 0) return state;
  }
  return ConnectivityState::kTransientFailure;
}

}  // namespace signalbox::lb
