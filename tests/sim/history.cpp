// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/history.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace signalbox::sim {
namespace {

using Touched = std::set<std::string>;

constexpr char kLatePrefix[] = "late-";

// Draws a change from a table; each row has its frequency in percent.
template <typename Rows>
const auto& draw_row(const Rows& rows, FakeChance& chance) {
  auto left = static_cast<unsigned>(chance.below(100));
  for (const auto& row : rows) {
    if (left < row.percent) return row;
    left -= row.percent;
  }
  return *std::rbegin(rows);
}

// --- endpoints ---------------------------------------------------------------

HostModel deal_host(int number, FakeChance& chance) {
  HostModel host;
  host.number = number;
  host.weight = static_cast<unsigned>(1 + chance.below(3));
  host.draining = chance.percent(5);
  host.unhealthy = chance.percent(10);
  host.degraded = chance.percent(10);
  return host;
}

// Makes random priorities and localities, and puts each host into at most one locality.
std::vector<PriorityModel> deal_hosts(FakeChance& chance) {
  std::vector<PriorityModel> priorities(1 + chance.below(4));
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    const std::size_t zones = 1 + chance.below(3);
    for (std::size_t zone = 0; zone < zones; ++zone) {
      // The name has the priority's number, so no two priorities share a name. An "x" in the name
      // is random, so dealing anew may rename a locality.
      priorities[i].push_back({absl::StrCat("z", i, chance.percent(70) ? "" : "x", zone),
                               static_cast<unsigned>(1 + chance.below(3)),
                               {}});
    }
  }
  for (int host = 0; host < kHosts; ++host) {
    if (chance.percent(30)) continue;
    PriorityModel& priority = priorities[chance.below(priorities.size())];
    LocalityModel& locality = priority[chance.below(priority.size())];
    locality.hosts.push_back(deal_host(host, chance));
  }
  return priorities;
}

LocalityModel& any_locality(ClusterModel& cluster, FakeChance& chance) {
  PriorityModel& priority = cluster.priorities[chance.below(cluster.priorities.size())];
  return priority[chance.below(priority.size())];
}

// A random host of the cluster; null: it has none.
HostModel* any_host(ClusterModel& cluster, FakeChance& chance) {
  std::vector<HostModel*> hosts;
  for (PriorityModel& priority : cluster.priorities) {
    for (LocalityModel& locality : priority) {
      for (HostModel& host : locality.hosts)
        hosts.push_back(&host);
    }
  }
  return hosts.empty() ? nullptr : chance.one_of(hosts);
}

bool has_locality(const PriorityModel& priority, const std::string& name) {
  return std::ranges::any_of(priority, [&](const auto& known) { return known.name == name; });
}

void take_out(ClusterModel& cluster, int host) {
  for (PriorityModel& priority : cluster.priorities) {
    for (LocalityModel& locality : priority)
      std::erase_if(locality.hosts, [&](const auto& known) { return known.number == host; });
  }
}

// Removes priorities without localities: xDS forbids a gap between priorities.
void close_gaps(ClusterModel& cluster) {
  std::erase_if(cluster.priorities, [](const auto& priority) { return priority.empty(); });
  if (cluster.priorities.empty()) cluster.priorities = {{{"last", 1, {}}}};
}

void deal_anew(ClusterModel& cluster, FakeChance& chance) {
  cluster.priorities = deal_hosts(chance);
}

void swap_priorities(ClusterModel& cluster, FakeChance& chance) {
  std::swap(cluster.priorities.front(),
            cluster.priorities[chance.below(cluster.priorities.size())]);
}

void drop_priority(ClusterModel& cluster, FakeChance& chance) {
  cluster.priorities.erase(cluster.priorities.begin() +
                           static_cast<std::ptrdiff_t>(chance.below(cluster.priorities.size())));
  close_gaps(cluster);
}

void add_priority(ClusterModel& cluster, FakeChance& chance) {
  const auto where = static_cast<std::ptrdiff_t>(chance.below(cluster.priorities.size() + 1));
  const int host = static_cast<int>(chance.below(kHosts));
  take_out(cluster, host);
  cluster.priorities.insert(cluster.priorities.begin() + where,
                            {{absl::StrCat("new", host), 1, {deal_host(host, chance)}}});
}

void move_host(ClusterModel& cluster, FakeChance& chance) {
  const HostModel* host = any_host(cluster, chance);
  if (host == nullptr) return;
  const HostModel moved = *host;
  take_out(cluster, moved.number);
  any_locality(cluster, chance).hosts.push_back(moved);
}

void move_locality(ClusterModel& cluster, FakeChance& chance) {
  PriorityModel& from = cluster.priorities[chance.below(cluster.priorities.size())];
  PriorityModel& to = cluster.priorities[chance.below(cluster.priorities.size())];
  if (&from == &to || has_locality(to, from.back().name)) return;
  to.push_back(std::move(from.back()));
  from.pop_back();
  close_gaps(cluster);
}

void drop_locality(ClusterModel& cluster, FakeChance& chance) {
  cluster.priorities[chance.below(cluster.priorities.size())].pop_back();
  close_gaps(cluster);
}

void add_locality(ClusterModel& cluster, FakeChance& chance) {
  PriorityModel& priority = cluster.priorities[chance.below(cluster.priorities.size())];
  const std::string name = absl::StrCat("y", chance.below(4));
  if (!has_locality(priority, name)) priority.push_back({name, 2, {}});
}

void change_health(ClusterModel& cluster, FakeChance& chance) {
  HostModel* host = any_host(cluster, chance);
  if (host == nullptr) return;
  using Status = bool HostModel::*;
  const Status status = chance.one_of(
      std::vector<Status>{&HostModel::draining, &HostModel::unhealthy, &HostModel::degraded});
  host->*status = !(host->*status);
}

// A whole priority becomes unhealthy or healthy again. This may cause panic where a threshold is
// set.
void change_all_health(ClusterModel& cluster, FakeChance& chance) {
  PriorityModel& priority = cluster.priorities[chance.below(cluster.priorities.size())];
  const bool unhealthy = chance.percent(60);
  for (LocalityModel& locality : priority) {
    for (HostModel& host : locality.hosts)
      host.unhealthy = unhealthy;
  }
}

void add_or_remove_host(ClusterModel& cluster, FakeChance& chance) {
  const int host = static_cast<int>(chance.below(kHosts));
  take_out(cluster, host);
  if (chance.percent(50)) any_locality(cluster, chance).hosts.push_back(deal_host(host, chance));
}

void change_weights(ClusterModel& cluster, FakeChance& chance) {
  any_locality(cluster, chance).weight = static_cast<unsigned>(1 + chance.below(9));
  HostModel* host = any_host(cluster, chance);
  if (host != nullptr) host->weight = static_cast<unsigned>(1 + chance.below(9));
}

void change_drops(ClusterModel& cluster, FakeChance& chance) {
  cluster.drop_percent = chance.one_of(std::vector<unsigned>{0, 0, 30, 100});
}

struct EndpointChange {
  unsigned percent;
  void (*make)(ClusterModel& cluster, FakeChance& chance);
};

constexpr EndpointChange kEndpointChanges[] = {
    {20, deal_anew},
    {10, swap_priorities},
    {6, drop_priority},
    {6, add_priority},
    {15, move_host},
    {7, move_locality},
    {5, drop_locality},
    {5, add_locality},
    {8, change_health},
    {3, change_all_health},
    {5, add_or_remove_host},
    {5, change_weights},
    {5, change_drops},
};

// --- clusters ----------------------------------------------------------------

void change_limit(ClusterModel& cluster, FakeChance& chance) {
  cluster.max_requests = chance.one_of(std::vector<unsigned>{1024, 1024, 8, 1});
}

void change_ejection(ClusterModel& cluster, FakeChance& chance) {
  cluster.ejects = chance.percent(50);
}

// The new idle_timeout is between 0 (sessions release an idle host at once) and half an hour, or
// unset (the default of an hour).
void change_idle_timeout(ClusterModel& cluster, FakeChance& chance) {
  cluster.idle_seconds = chance.one_of(
      std::vector<std::optional<unsigned>>{std::nullopt, 0, 3, 20, 60, 600, 600, 1800});
}

void change_may_stay(ClusterModel& cluster, FakeChance& chance) {
  cluster.may_stay = chance.one_of(std::vector<MayStay>{
      MayStay::kServed, MayStay::kDrainingToo, MayStay::kDrainingToo, MayStay::kNobody});
}

void change_policy(ClusterModel& cluster, FakeChance& chance) {
  cluster.policy = &policy_table()[chance.below(policy_table().size())];
}

// Changes an aggregate's mode (how it spreads calls) and its panic threshold.
void change_spread(ClusterModel& cluster, FakeChance& chance) {
  using Mode = std::optional<AggregateMode>;
  cluster.mode =
      chance.one_of(std::vector<Mode>{Mode(), AggregateMode::kPriority, AggregateMode::kTiered});
  cluster.panic_percent =
      chance.one_of(std::vector<std::optional<unsigned>>{std::nullopt, std::nullopt, 0, 30, 100});
}

// Turns EDS into DNS and DNS into EDS; other settings stay.
void change_kind(const std::string& name, ClusterModel& cluster, FakeChance& chance) {
  if (cluster.kind == ClusterKind::kEds) {
    cluster.kind = ClusterKind::kDns;
    cluster.dns_name = absl::StrCat("dns", number_of(name), ".example:443");
    cluster.priorities.clear();
  } else if (cluster.kind == ClusterKind::kDns) {
    cluster.kind = ClusterKind::kEds;
    cluster.dns_name.clear();
    cluster.priorities = deal_hosts(chance);
  }
}

ClusterModel deal_cluster(std::size_t number, FakeChance& chance) {
  ClusterModel cluster;
  change_policy(cluster, chance);
  if (chance.percent(10)) change_drops(cluster, chance);
  if (chance.percent(15)) change_limit(cluster, chance);
  if (chance.percent(30)) change_ejection(cluster, chance);
  if (chance.percent(80)) change_idle_timeout(cluster, chance);
  if (chance.percent(70)) change_may_stay(cluster, chance);
  const std::size_t kind = chance.below(10);
  if (number >= 2 && kind < 4) {
    cluster.kind = ClusterKind::kAggregate;
    if (chance.percent(50)) change_spread(cluster, chance);
    const std::size_t children = 1 + chance.below(3);
    for (std::size_t i = 0; i < children; ++i) {
      const std::string child = cluster_name(chance.below(number));
      if (std::ranges::count(cluster.children, child) == 0) cluster.children.push_back(child);
    }
  } else if (kind == 4) {
    cluster.kind = ClusterKind::kDns;
    cluster.dns_name = absl::StrCat("dns", number, ".example:443");
  } else {
    cluster.priorities = deal_hosts(chance);
  }
  return cluster;
}

std::string any_cluster(const Topology& topology, FakeChance& chance) {
  auto chosen = topology.clusters.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(chance.below(topology.clusters.size())));
  return chosen->first;
}

std::vector<std::pair<std::string, unsigned>> deal_targets(const Topology& topology,
                                                           FakeChance& chance) {
  std::vector<std::pair<std::string, unsigned>> targets;
  const std::size_t count = 1 + chance.below(2);
  for (std::size_t i = 0; i < count; ++i) {
    std::string name = any_cluster(topology, chance);
    if (chance.percent(4)) name = kGhost;
    const bool known =
        std::ranges::any_of(targets, [&](const auto& target) { return target.first == name; });
    if (!known) targets.emplace_back(std::move(name), static_cast<unsigned>(1 + chance.below(3)));
  }
  return targets;
}

// --- mutations: each returns the touched resources ----------------------------

TargetModel& any_target(Topology& topology, FakeChance& chance) {
  return topology.targets[chance.below(topology.targets.size())];
}

Touched mutate_route(Topology& topology, FakeChance& chance) {
  TargetModel& target = any_target(topology, chance);
  RouteModel& route = target.routes[chance.below(target.routes.size())];
  route.clusters = deal_targets(topology, chance);
  return {""};
}

// Gives a target without a virtual host its virtual host back. If all targets have one, takes one
// target's virtual host away; then the next mutate() calls this function again.
Touched mutate_virtual_host(Topology& topology, FakeChance& chance) {
  const auto left_out = std::ranges::find_if(
      topology.targets, [](const TargetModel& target) { return target.for_somebody_else; });
  TargetModel& target =
      left_out == topology.targets.end() ? any_target(topology, chance) : *left_out;
  target.for_somebody_else = !target.for_somebody_else;
  return {""};
}

bool somebody_is_left_out(const Topology& topology) {
  return std::ranges::any_of(topology.targets,
                             [](const TargetModel& target) { return target.for_somebody_else; });
}

Touched mutate_route_name(Topology& topology, FakeChance& chance) {
  TargetModel& target = any_target(topology, chance);
  if (chance.percent(50)) {
    target.inline_routes = !target.inline_routes;
  } else {
    target.route_name = absl::StrCat(target.listener, "-routes-", chance.below(3));
  }
  return {""};
}

Touched add_or_replace_cluster(Topology& topology, FakeChance& chance) {
  const std::size_t number = chance.below(kClusters);
  topology.clusters[cluster_name(number)] = deal_cluster(number, chance);
  return {cluster_name(number)};
}

Touched remove_cluster(Topology& topology, FakeChance& chance) {
  if (topology.clusters.size() < 3) return {};
  const std::string name = any_cluster(topology, chance);
  topology.clusters.erase(name);
  return {name};
}

Touched mutate_endpoints(Topology& topology, FakeChance& chance) {
  const std::string name = any_cluster(topology, chance);
  ClusterModel& cluster = topology.clusters.at(name);
  if (cluster.kind != ClusterKind::kEds) return {};
  draw_row(kEndpointChanges, chance).make(cluster, chance);
  return {name};
}

Touched mutate_children(Topology& topology, FakeChance& chance) {
  const std::string name = any_cluster(topology, chance);
  ClusterModel& cluster = topology.clusters.at(name);
  if (cluster.kind != ClusterKind::kAggregate) return {};
  std::ranges::reverse(cluster.children);
  const std::string child = cluster_name(chance.below(number_of(name)));
  if (std::ranges::count(cluster.children, child) == 0) {
    cluster.children.push_back(child);
  } else if (cluster.children.size() > 1) {
    std::erase(cluster.children, child);
  }
  return {name};
}

Touched mutate_policy(Topology& topology, FakeChance& chance) {
  const std::string name = any_cluster(topology, chance);
  change_policy(topology.clusters.at(name), chance);
  return {name};
}

Touched mutate_kind(Topology& topology, FakeChance& chance) {
  const std::string name = any_cluster(topology, chance);
  change_kind(name, topology.clusters.at(name), chance);
  return {name};
}

Touched mutate_settings(Topology& topology, FakeChance& chance) {
  const std::string name = any_cluster(topology, chance);
  const auto change = chance.one_of(
      std::vector{change_limit, change_ejection, change_idle_timeout, change_may_stay});
  change(topology.clusters.at(name), chance);
  return {name};
}

Touched mutate_spread(Topology& topology, FakeChance& chance) {
  const std::string name = any_cluster(topology, chance);
  ClusterModel& cluster = topology.clusters.at(name);
  if (cluster.kind != ClusterKind::kAggregate) return {};
  change_spread(cluster, chance);
  return {name};
}

// Switches sessions on or off, or moves them to another path.
Touched mutate_sessions(Topology& topology, FakeChance& chance) {
  TargetModel& target = any_target(topology, chance);
  if (target.sessions && chance.percent(50)) {
    target.cookie_path = target.cookie_path.empty() ? "/a" : "";
  } else {
    target.sessions = !target.sessions;
  }
  return {""};
}

struct Mutation {
  unsigned percent;
  Touched (*make)(Topology& topology, FakeChance& chance);
};

constexpr Mutation kMutations[] = {
    {14, mutate_route},
    {2, mutate_virtual_host},
    {5, mutate_route_name},
    {12, add_or_replace_cluster},
    {8, remove_cluster},
    {28, mutate_endpoints},
    {7, mutate_children},
    {5, mutate_spread},
    {7, mutate_policy},
    {4, mutate_kind},
    {6, mutate_settings},
    {2, mutate_sessions},
};

template <typename Rows>
constexpr unsigned percent_of(const Rows& rows) {
  unsigned sum = 0;
  for (const auto& row : rows)
    sum += row.percent;
  return sum;
}

static_assert(percent_of(kMutations) == 100 && percent_of(kEndpointChanges) == 100);

}  // namespace

Topology make_topology(FakeChance& chance) {
  Topology topology;
  for (std::size_t number = 0; number < 5; ++number)
    topology.clusters[cluster_name(number)] = deal_cluster(number, chance);
  for (const char* listener : {"orders", "billing"}) {
    if (!topology.targets.empty() && chance.percent(50)) break;
    TargetModel target;
    target.listener = listener;
    target.route_name = absl::StrCat(listener, "-routes-0");
    target.inline_routes = chance.percent(30);
    target.sessions = chance.percent(60);
    target.cookie_path = chance.percent(80) ? "" : "/a";
    for (const char* prefix : {"/a/", "/b/", "/"})
      target.routes.push_back({prefix, deal_targets(topology, chance)});
    topology.targets.push_back(std::move(target));
  }
  return topology;
}

std::set<std::string> mutate(Topology& topology, FakeChance& chance) {
  if (somebody_is_left_out(topology)) return mutate_virtual_host(topology, chance);
  return draw_row(kMutations, chance).make(topology, chance);
}

void complete(Topology& topology) {
  for (TargetModel& target : topology.targets)
    target.for_somebody_else = false;
  for (const std::string& name : reachable(topology)) {
    if (name == kGhost || topology.clusters.contains(name)) continue;
    ClusterModel cluster;
    cluster.priorities = {{{"back", 1, {HostModel{}}}}};
    topology.clusters[name] = cluster;
  }
}

void touch_everything(Topology& topology) {
  complete(topology);
  for (auto& [name, cluster] : topology.clusters) {
    cluster.connect_timeout_seconds = cluster.connect_timeout_seconds == 4 ? 5 : 4;
    if (cluster.kind == ClusterKind::kDns) {
      const bool late = absl::StartsWith(cluster.dns_name, kLatePrefix);
      cluster.dns_name =
          late ? cluster.dns_name.substr(sizeof kLatePrefix - 1) : kLatePrefix + cluster.dns_name;
    }
    for (PriorityModel& priority : cluster.priorities) {
      for (LocalityModel& locality : priority)
        locality.weight += 3;
    }
  }
}

void shorten_idle_timeouts(Topology& topology) {
  for (auto& [name, cluster] : topology.clusters)
    cluster.idle_seconds = std::min(cluster.idle_seconds.value_or(600), 600U);
}

void move_all_hosts(Topology& topology) {
  for (auto& [name, cluster] : topology.clusters) {
    for (PriorityModel& priority : cluster.priorities) {
      for (LocalityModel& locality : priority)
        locality.name += "m";
    }
  }
}

}  // namespace signalbox::sim
