// SPDX-License-Identifier: Apache-2.0
//
// tiered_rules — turns the reports of an aggregate's leaves into shares of calls (ENV-4 … 18).
//
//   HostReports, leaf by leaf ─▶ [plan_tiers: linearise, priority_loads] ─▶ loads, tiers to connect
//
// Pure. Called when a leaf has reported or the list of leaves has changed, never by a pick.

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
  std::uint32_t priority = 0;  ///< The priority's number in that leaf.
  PriorityHealth health;
  PriorityLoad load;

  friend bool operator==(const TierRow&, const TierRow&) = default;
};

/// A tier (healthy, degraded or all endpoints of one priority), and its percentage of all calls;
/// never 0.
struct TierShare {
  std::size_t leaf = 0;
  Tier tier;
  std::uint32_t percent = 0;

  friend bool operator==(const TierShare&, const TierShare&) = default;
};

struct TierPlan {
  /// The priorities of all leaves: leaf by leaf, in the aggregate's order (ENV-5). Priorities
  /// without hosts and leaves without a report are left out (ENV-6).
  std::vector<TierRow> rows;
  /// The loads above 0, in the order of the draws: healthy loads, then degraded loads (ENV-18). A
  /// priority in panic may have two shares, both of all its hosts. The percentages sum to 100, or
  /// the list is empty.
  std::vector<TierShare> shares;
  /// The tiers to connect, by leaf: each tier with a load (ENV-25), and, in the order of the draws,
  /// each tier until the health scores of the tiers before it sum to 100. A tier without a load is
  /// connected because otherwise it would stay unknown that it has become healthy again. In a
  /// priority with a load that is in panic, all hosts but DRAINING ones are connected.
  std::vector<TierSet> connected;

  friend bool operator==(const TierPlan&, const TierPlan&) = default;
};

/// Computes the plan from the report of each leaf; null: the leaf has none. `panic_threshold`: see
/// priority_loads().
TierPlan plan_tiers(std::span<const HostReportPtr> leaves, std::uint32_t panic_threshold);

}  // namespace signalbox::lb
