// SPDX-License-Identifier: Apache-2.0
//
// tiered_rules — from what the leaves of an aggregate report to who gets which calls (ENV-4 … 18).
//
//   HostReports, leaf by leaf ─▶ [plan_tiers: linearise, priority_loads] ─▶ loads, whom to connect
//
// Pure. Asked when health changes, never by a pick.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lb/health/priority_load.hpp"
#include "messages/lb_config.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// One priority of one leaf.
struct TierRow {
  std::size_t leaf = 0;
  std::uint32_t priority = 0;  ///< In that leaf.
  PriorityHealth health;
  PriorityLoad load;

  friend bool operator==(const TierRow&, const TierRow&) = default;
};

/// What one tier gets, in percent of all calls; never 0.
struct TierShare {
  std::size_t leaf = 0;
  Tier tier;
  std::uint32_t percent = 0;

  friend bool operator==(const TierShare&, const TierShare&) = default;
};

struct TierPlan {
  /// Clusters in order, inside each its priorities (ENV-5), without those that have no hosts and
  /// leaves that have not reported (ENV-6).
  std::vector<TierRow> rows;
  /// In the order in which draws find them: healthy tiers, then degraded ones (ENV-18). Together
  /// 100, or none.
  std::vector<TierShare> shares;
  /// By leaf: who is to be connected. In the order of `shares` all up to the one with which the
  /// health scores reach 100: those with a load (ENV-25), and those that may take it back, whose
  /// health would not be known else. A priority that panics is so with all of its hosts as well.
  std::vector<TierSet> connected;

  friend bool operator==(const TierPlan&, const TierPlan&) = default;
};

/// A null report is a leaf's that has none. `panic_threshold`: see priority_loads().
TierPlan plan_tiers(std::span<const HostReportPtr> leaves, std::uint32_t panic_threshold);

}  // namespace signalbox::lb
