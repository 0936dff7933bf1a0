// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cluster_tree.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace signalbox::lb {
namespace {

bool intersect(const std::vector<LocalityName>& left, const std::vector<LocalityName>& right) {
  return std::ranges::any_of(
      left, [&](const LocalityName& name) { return std::ranges::count(right, name) != 0; });
}

std::vector<LocalityName> localities_of(const Priority& priority) {
  std::vector<LocalityName> names;
  for (const auto* part : priority.lists()) {
    for (const LocalityPtr& locality : *part)
      names.push_back(locality->name);
  }
  return names;
}

}  // namespace

// Names are given from the highest priority down. A priority takes over the name of an old priority
// with which it has a locality in common. If several old priorities qualify, it takes the name of
// the highest of them that has not lost its name yet. A priority without localities keeps the name
// of the old priority with the same number, if the old priority had no localities either.
std::vector<ChildName> PriorityNames::assign(const Endpoints& endpoints) {
  std::vector<Named> named;
  std::vector<bool> taken(last_.size(), false);
  for (std::size_t place = 0; place < endpoints.priorities.size(); ++place) {
    std::vector<LocalityName> localities = localities_of(endpoints.priorities[place]);
    const auto lives_on = [&](std::size_t old) {
      if (taken[old]) return false;
      if (localities.empty()) return old == place && last_[old].localities.empty();
      return intersect(last_[old].localities, localities);
    };
    std::size_t old = 0;
    while (old < last_.size() && !lives_on(old))
      ++old;
    const bool found = old < last_.size();
    if (found) taken[old] = true;
    named.push_back({found ? last_[old].name : ChildName("child" + std::to_string(next_++)),
                     std::move(localities)});
  }
  last_ = std::move(named);
  std::vector<ChildName> names;
  names.reserve(last_.size());
  for (const Named& entry : last_)
    names.push_back(entry.name);
  return names;
}

bool may_have_sessions(const XdsConfig& xds) {
  return xds.listener != nullptr &&
         std::ranges::any_of(xds.listener->filters, [](const HttpFilter& filter) {
           return std::holds_alternative<StatefulSessionFilter>(filter.config);
         });
}

namespace {

// EDS pushes changes, so requests for re-resolution are of use only for DNS names (A37-33).
bool ignores_reresolution(const Cluster& cluster) {
  return std::holds_alternative<EdsDiscovery>(cluster.discovery);
}

LbConfigPtr priority_tree(const Cluster& cluster,
                          const LbConfigPtr& lb_policy,
                          const std::vector<ChildName>& priorities,
                          const ClusterName& aggregate) {
  PriorityConfig priority;
  priority.cluster = cluster.name;
  priority.aggregate = aggregate;
  priority.priorities = priorities;
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    priority.children[priorities[i]] = {lb_policy, i, ignores_reresolution(cluster)};
  }
  return make_lb_config(std::move(priority));
}

}  // namespace

//  cds(leaf) ─▶ outlier_detection ─▶ cluster_impl ─▶ override_host ─▶ priority ─┬▶ child0: policy
//                                                            or leaf_tiers      └▶ child1: policy
LbConfigPtr leaf_tree(const Cluster& cluster,
                      const LbConfigPtr& lb_policy,
                      const std::vector<ChildName>& priorities,
                      bool sessions,
                      const TierSetPtr& tiers,
                      const ClusterName& aggregate) {
  const LbConfigPtr choice =
      tiers == nullptr
          ? priority_tree(cluster, lb_policy, priorities, aggregate)
          : make_lb_config(LeafTiersConfig{
                cluster.name, lb_policy, priorities, tiers, ignores_reresolution(cluster)});
  const ClusterName& routed = aggregate.str().empty() ? cluster.name : aggregate;
  const auto override_host = make_lb_config(OverrideHostConfig{
      routed, choice, cluster.idle_timeout, cluster.override_host_status, sessions});
  const auto* eds = std::get_if<EdsDiscovery>(&cluster.discovery);
  const auto cluster_impl =
      make_lb_config(ClusterImplConfig{cluster.name,
                                       override_host,
                                       eds != nullptr ? eds->service_name : std::string(),
                                       cluster.max_concurrent_requests,
                                       aggregate,
                                       cluster.load_reporting});
  return make_lb_config(
      OutlierDetectionConfig{cluster_impl, cluster.name, cluster.outlier_detection});
}

//  cds(aggregate) ─▶ priority ─┬▶ cds(leaf) ─▶ …
//                    or tiered └▶ cds(leaf) ─▶ …        named after their clusters (A75-13)
LbConfigPtr aggregate_tree(const Cluster& cluster,
                           const AggregateLeaves& leaves,
                           AggregateMode mode) {
  if (mode == AggregateMode::kTiered)
    return make_lb_config(
        TieredConfig{cluster.name, leaves.leaves, cluster.lb_policy, cluster.panic_threshold});
  PriorityConfig priority;
  priority.cluster = cluster.name;
  for (const ClusterName& leaf : leaves.leaves) {
    const ChildName name(leaf.str());
    priority.priorities.push_back(name);
    priority.children[name] = {
        make_lb_config(CdsConfig{leaf, cluster.lb_policy, nullptr, cluster.name}),
        std::nullopt,
        false};
  }
  return make_lb_config(std::move(priority));
}

}  // namespace signalbox::lb
