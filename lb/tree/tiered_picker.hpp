// SPDX-License-Identifier: Apache-2.0
//
// tiered's picker — draws the leaf and the tier (healthy, degraded or all endpoints of one
// priority) of a call. The leaf's picker picks the endpoint.
//
//   TierShares ─▶ TierTable, when loads change ─┐
//   leaves' pickers ────────────────────────────┴▶ Picker::pick: draw ─▶ table ─▶ leaf, with tier
//          └▶ SessionHomes ─▶ a call of a session: the leaf that has its host (ENV-27)
//
// Takes no lock. Allocates nothing on the complete path, unless it has to decode a cookie. A pick
// costs one draw and one look-up (ENV-19). Exception: a call with a host in its session cookie goes
// to the leaf that can do most for that host (the best HostPromise; the first leaf of equals),
// whatever the loads are. override_host in that leaf sends the call to the host, or lets it wait
// for the host. When no leaf can use the host, the call is drawn, or fails if its session is
// strict. If a leaf knows the host of a strict call, the call fails in that leaf, which can say
// what is wrong with the host.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lb/tree/tiered_rules.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {

/// A table with the tier for each draw from 0 to 99 (ENV-18). Immutable.
class TierTable {
 public:
  /// Precondition: the shares' percents sum to 100.
  explicit TierTable(std::vector<TierShare> shares);

  /// The index in shares() of the draw's share.
  std::size_t place(std::uint64_t draw) const { return by_draw_[draw]; }

  const std::vector<TierShare>& shares() const { return shares_; }

 private:
  std::vector<TierShare> shares_;
  std::array<std::uint8_t, 100> by_draw_{};
};

using TierTablePtr = std::shared_ptr<const TierTable>;

/// The input of a picker.
struct TieredParts {
  ClusterName cluster;  ///< The aggregate, which explanations name.
  TierTablePtr table;   ///< Null: no tier has a share, and calls that are drawn go to `otherwise`.
  std::vector<ClusterName> names;  ///< The leaves' names.
  std::vector<PickerPtr> leaves;  ///< Indexed by TierShare::leaf. Not null if the leaf has a share.
  PickerPtr otherwise = nullptr;  ///< Not null if `table` is null.

  friend bool operator==(const TieredParts&, const TieredParts&) = default;
};

/// Whether any leaf's picker has a session_hint(), that is, may have hosts for sessions.
bool have_sessions(const std::vector<PickerPtr>& leaves);

PickerPtr make_tiered_picker(TieredParts parts);

}  // namespace signalbox::lb
