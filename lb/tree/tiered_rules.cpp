// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/tiered_rules.hpp"

namespace signalbox::lb {
namespace {

PriorityHealth health_of(const PriorityHosts& hosts, const HostReport& report) {
  const auto& [healthy, degraded, total] = hosts;
  if (!report.weighted)
    return {healthy.hosts, degraded.hosts, total.hosts, report.overprovisioning_percent};
  return {healthy.weight,
          degraded.weight,
          total.weight,
          report.overprovisioning_percent,
          HostNumbers{healthy.hosts + degraded.hosts, total.hosts}};
}

std::vector<TierRow> linearised(std::span<const HostReportPtr> leaves) {
  std::vector<TierRow> rows;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    if (leaves[leaf] == nullptr) continue;
    const std::vector<PriorityHosts>& priorities = leaves[leaf]->priorities;
    for (std::uint32_t at = 0; at < priorities.size(); ++at) {
      if (priorities[at].total.hosts > 0)
        rows.push_back({leaf, at, health_of(priorities[at], *leaves[leaf]), {}});
    }
  }
  return rows;
}

Tier tier_of(const TierRow& row, bool degraded) {
  return {row.priority, degraded ? Tier::Hosts::kDegraded : Tier::Hosts::kHealthy};
}

}  // namespace

TierPlan plan_tiers(std::span<const HostReportPtr> leaves, std::uint32_t panic_threshold) {
  TierPlan plan;
  plan.connected.resize(leaves.size());
  plan.rows = linearised(leaves);
  std::vector<PriorityHealth> healths;
  for (const TierRow& row : plan.rows)
    healths.push_back(row.health);
  const auto loads = priority_loads(healths, panic_threshold);
  for (std::size_t at = 0; at < loads.size(); ++at)
    plan.rows[at].load = loads[at];
  std::uint32_t reached = 0;
  for (const bool degraded : {false, true}) {
    for (const TierRow& row : plan.rows) {
      const std::uint32_t percent = degraded ? row.load.degraded : row.load.healthy;
      Tier tier = tier_of(row, degraded);
      if (reached < 100) plan.connected[row.leaf].insert(tier);
      reached += health_score(degraded ? row.health.degraded : row.health.healthy,
                              row.health.total,
                              row.health.overprovisioning_factor);
      if (percent == 0) continue;
      if (row.load.panic) tier.hosts = Tier::Hosts::kAll;
      plan.shares.push_back({row.leaf, tier, percent});
      plan.connected[row.leaf].insert(tier);
    }
  }
  return plan;
}

}  // namespace signalbox::lb
