// SPDX-License-Identifier: Apache-2.0
//
// tiered's picker — one draw says which leaf and tier a call goes to; the leaf's picker the rest.
//
//   TierShares ─▶ TierTable, when loads change ─┐
//   leaves' pickers ────────────────────────────┴▶ Picker::pick: draw ─▶ table ─▶ leaf, with tier
//
// Lock-free, allocates nothing. A pick costs one draw and one look-up (ENV-19).

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lb/policy/tiered_rules.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// Who gets the call that draws 0, 1, … 99 (ENV-18). Immutable.
class TierTable {
 public:
  /// Precondition: the shares' percents sum to 100; `leaves` are the names of theirs.
  TierTable(std::vector<TierShare> shares, std::vector<ClusterName> leaves);

  const TierShare& at(std::uint64_t draw) const { return shares_[by_draw_[draw]]; }

  const std::vector<TierShare>& shares() const { return shares_; }

  const ClusterName& name_of(const TierShare& share) const { return leaves_[share.leaf]; }

 private:
  std::vector<TierShare> shares_;
  std::vector<ClusterName> leaves_;
  std::array<std::uint8_t, 100> by_draw_{};
};

using TierTablePtr = std::shared_ptr<const TierTable>;

/// `cluster`: the aggregate, which explanations name. `leaves`: by TierShare::leaf; those with a
/// share are not null.
PickerPtr make_tiered_picker(ClusterName cluster,
                             TierTablePtr table,
                             std::vector<PickerPtr> leaves);

}  // namespace signalbox::lb
