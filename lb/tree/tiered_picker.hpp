// SPDX-License-Identifier: Apache-2.0
//
// tiered's picker — one draw says which leaf and tier a call goes to; the leaf's picker the rest.
//
//   TierShares ─▶ TierTable, when loads change ─┐
//   leaves' pickers ────────────────────────────┴▶ Picker::pick: draw ─▶ table ─▶ leaf, with tier
//          └▶ Seats, SessionHosts ─▶ a call of a session: the leaf that has its host (ENV-27)
//
// Lock-free, allocates nothing. A pick costs one draw and one look-up (ENV-19). One whose cookie
// names a host looks for that first: it goes to the leaf that can do most for it, the first of
// equals, whatever the loads are; that leaf's override_host leads it to the host, or has it wait
// for it. Where no leaf can use the host the call is drawn, or fails where its session is strict:
// in the leaf that knows the host and says what is wrong with it, if one does.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lb/tree/tiered_rules.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// Who gets the call that draws 0, 1, … 99 (ENV-18). Immutable.
class TierTable {
 public:
  /// Precondition: the shares' percents sum to 100.
  explicit TierTable(std::vector<TierShare> shares);

  const TierShare& at(std::uint64_t draw) const { return shares_[by_draw_[draw]]; }

  const std::vector<TierShare>& shares() const { return shares_; }

 private:
  std::vector<TierShare> shares_;
  std::array<std::uint8_t, 100> by_draw_{};
};

using TierTablePtr = std::shared_ptr<const TierTable>;

/// What a picker is made of.
struct TieredParts {
  ClusterName cluster;  ///< The aggregate, which explanations name.
  TierTablePtr table;   ///< Null: no tier has a share, and calls that are drawn go to `otherwise`.
  std::vector<ClusterName> names;  ///< Of the leaves.
  std::vector<PickerPtr> leaves;   ///< By TierShare::leaf; those with a share are not null.
  PickerPtr otherwise = nullptr;   ///< Not null where `table` is.

  friend bool operator==(const TieredParts&, const TieredParts&) = default;
};

/// Whether sessions may have hosts in any of the leaves.
bool have_sessions(const std::vector<PickerPtr>& leaves);

PickerPtr make_tiered_picker(TieredParts parts);

}  // namespace signalbox::lb
