// SPDX-License-Identifier: Apache-2.0
//
// leaf_tiers' picker — sends a call to the picker of the call's tier.
//
//   tiered: PickArgs::tier ─▶ … ─▶ [leaf_tiers' picker: one look-up] ─▶ the tier's own picker
//
// If a call's tier has no endpoints, the call goes to another tier of the same priority. If that
// priority has no endpoints at all, or the call has no tier, the call goes to the leaf's first
// tier. "First" prefers tiers with a running child to tiers without one. Lock-free, allocates
// nothing.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "messages/pick.hpp"

namespace signalbox::lb {

inline constexpr std::size_t kTiersOfPriority = 3;

/// The tier's index in a table of all tiers of a leaf.
constexpr std::size_t place_of(const Tier& tier) {
  return kTiersOfPriority * tier.priority + static_cast<std::size_t>(tier.hosts);
}

/// The tier's name: "priority 0", "priority 0, degraded endpoints", or "priority 0, all endpoints
/// (panic)".
std::string to_string(const Tier& tier);

struct TierPicker {
  PickerPtr picker;         ///< Null: the tier has no endpoints.
  bool is_started = false;  ///< The tier has a running child. False: its picks queue.

  friend bool operator==(const TierPicker&, const TierPicker&) = default;
};

/// `tiers` is indexed by place_of(). Precondition: at least one tier has endpoints.
PickerPtr make_leaf_tiers_picker(const std::vector<TierPicker>& tiers);

}  // namespace signalbox::lb
