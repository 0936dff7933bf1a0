// SPDX-License-Identifier: Apache-2.0
//
// tiered_rules — turns the reports of an aggregate's leaves into shares of calls (ENV-4 … 18).
//
//   HostReports, leaf by leaf ─▶ [plan_tiers: linearise, priority_loads] ─▶ loads, tiers to connect
//
// Pure. Called when health changes, never by a pick.

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

/// The share of one tier, in percent of all calls; never 0.
struct TierShare {
  std::size_t leaf = 0;
  Tier tier;
  std::uint32_t percent = 0;

  friend bool operator==(const TierShare&, const TierShare&) = default;
};

struct TierPlan {
  /// The priorities of all leaves, leaf by leaf in order (ENV-5). Priorities without hosts and
  /// leaves without a report are left out (ENV-6).
  std::vector<TierRow> rows;
  /// The shares in the order of the draws: healthy tiers, then degraded tiers (ENV-18). The
  /// shares sum to 100, or the list is empty.
  std::vector<TierShare> shares;
  /// The tiers to connect, by leaf: all tiers in the order of `shares`, up to the tier with which
  /// the health scores reach 100. These are the tiers with a load (ENV-25), and failed tiers before
  /// them: without connections it would stay unknown that such a tier is healthy again. Of a
  /// priority in panic, all hosts are connected.
  std::vector<TierSet> connected;

  friend bool operator==(const TierPlan&, const TierPlan&) = default;
};

/// A null report: the leaf has none. `panic_threshold`: see priority_loads().
TierPlan plan_tiers(std::span<const HostReportPtr> leaves, std::uint32_t panic_threshold);

}  // namespace signalbox::lb
