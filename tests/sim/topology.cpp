// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/topology.hpp"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace signalbox::sim {

const char kGhost[] = "ghost";

namespace {

constexpr char kLate[] = "late-";
constexpr int kClusters = 7;  // c0 … c6; children of an aggregate have smaller numbers.
constexpr int kHosts = 5;

std::string cluster_name(std::size_t number) {
  return absl::StrCat("c", number);
}

int number_of(const std::string& cluster) {
  int number = 0;
  return absl::SimpleAtoi(cluster.substr(1), &number) ? number : 0;
}

// Deals hosts to priorities and localities anew, each at most once.
std::vector<PriorityModel> deal_hosts(FakeChance& chance) {
  std::vector<PriorityModel> priorities(1 + chance.below(3));
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    const std::size_t zones = 1 + chance.below(2);
    for (std::size_t zone = 0; zone < zones; ++zone) {
      // Zones move between priorities, or stay.
      priorities[i].push_back({absl::StrCat("z", i, chance.percent(70) ? "" : "x", zone),
                               static_cast<unsigned>(1 + chance.below(3)),
                               {}});
    }
  }
  for (int host = 0; host < kHosts; ++host) {
    if (chance.percent(30)) continue;
    PriorityModel& priority = priorities[chance.below(priorities.size())];
    LocalityModel& locality = priority[chance.below(priority.size())];
    locality.hosts.push_back({host, chance.percent(5), chance.percent(10)});
  }
  return priorities;
}

ClusterModel deal_cluster(std::size_t number, FakeChance& chance) {
  ClusterModel cluster;
  cluster.pick_first = chance.percent(25);
  const std::size_t kind = chance.below(10);
  if (number >= 2 && kind < 4) {
    cluster.kind = ClusterKind::kAggregate;
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

std::vector<std::pair<std::string, unsigned>> deal_targets(const Topology& topology,
                                                           FakeChance& chance) {
  std::vector<std::pair<std::string, unsigned>> targets;
  const std::size_t count = 1 + chance.below(2);
  for (std::size_t i = 0; i < count; ++i) {
    auto chosen = topology.clusters.begin();
    std::advance(chosen, static_cast<std::ptrdiff_t>(chance.below(topology.clusters.size())));
    std::string name = chance.percent(4) ? kGhost : chosen->first;
    const bool known =
        std::ranges::any_of(targets, [&](const auto& target) { return target.first == name; });
    if (!known) targets.emplace_back(std::move(name), static_cast<unsigned>(1 + chance.below(3)));
  }
  return targets;
}

void collect_leaves(const Topology& topology,
                    const std::string& name,
                    std::vector<std::string>& leaves) {
  const auto found = topology.clusters.find(name);
  if (found == topology.clusters.end()) return;
  if (found->second.kind != ClusterKind::kAggregate) {
    if (std::ranges::count(leaves, name) == 0) leaves.push_back(name);
    return;
  }
  for (const std::string& child : found->second.children)
    collect_leaves(topology, child, leaves);
}

void collect_reachable(const Topology& topology,
                       const std::string& name,
                       std::set<std::string>& names) {
  if (!names.insert(name).second) return;
  const auto found = topology.clusters.find(name);
  if (found == topology.clusters.end()) return;
  for (const std::string& child : found->second.children)
    collect_reachable(topology, child, names);
}

bool is_served(const HostModel& host) {
  return !host.unhealthy && !host.draining;
}

bool has_hosts(const PriorityModel& priority) {
  return std::ranges::any_of(priority, [](const LocalityModel& locality) {
    return std::ranges::any_of(locality.hosts, is_served);
  });
}

// --- mutations: each returns what it touched ---------------------------------

using Touched = std::set<std::string>;

std::string any_cluster(const Topology& topology, FakeChance& chance) {
  auto chosen = topology.clusters.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(chance.below(topology.clusters.size())));
  return chosen->first;
}

TargetModel& any_target(Topology& topology, FakeChance& chance) {
  return topology.targets[chance.below(topology.targets.size())];
}

Touched change_route(Topology& topology, FakeChance& chance) {
  TargetModel& target = any_target(topology, chance);
  RouteModel& route = target.routes[chance.below(target.routes.size())];
  route.clusters = deal_targets(topology, chance);
  return {""};
}

// Who is left without a virtual host gets one back with the next change.
Touched change_virtual_host(Topology& topology, FakeChance& chance) {
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

Touched change_route_name(Topology& topology, FakeChance& chance) {
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

Touched change_endpoints(Topology& topology, FakeChance& chance) {
  const std::string name = any_cluster(topology, chance);
  ClusterModel& cluster = topology.clusters.at(name);
  if (cluster.kind != ClusterKind::kEds) return {};
  if (chance.percent(40)) {
    cluster.priorities = deal_hosts(chance);
  } else if (chance.percent(50) && cluster.priorities.size() > 1) {
    std::swap(cluster.priorities.front(), cluster.priorities.back());
  } else {
    auto& hosts = cluster.priorities.front().front().hosts;
    if (!hosts.empty()) hosts.erase(hosts.begin());
  }
  return {name};
}

Touched change_children(Topology& topology, FakeChance& chance) {
  const std::string name = any_cluster(topology, chance);
  ClusterModel& cluster = topology.clusters.at(name);
  if (cluster.kind != ClusterKind::kAggregate) return {};
  std::ranges::reverse(cluster.children);
  const auto number = static_cast<std::size_t>(number_of(name));
  const std::string child = cluster_name(chance.below(number));
  if (std::ranges::count(cluster.children, child) == 0) {
    cluster.children.push_back(child);
  } else if (cluster.children.size() > 1) {
    std::erase(cluster.children, child);
  }
  return {name};
}

Touched change_policy(Topology& topology, FakeChance& chance) {
  const std::string name = any_cluster(topology, chance);
  ClusterModel& cluster = topology.clusters.at(name);
  cluster.pick_first = !cluster.pick_first;
  return {name};
}

}  // namespace

Address address_of(const std::string& cluster, int host) {
  return Address(absl::StrCat("10.0.", number_of(cluster), ".", host + 1, ":80"));
}

std::string owner_of(const Address& address) {
  const std::vector<std::string> parts = absl::StrSplit(address.str(), '.');
  return absl::StrCat("c", parts.at(2));
}

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
    for (const char* prefix : {"/a/", "/b/", "/"})
      target.routes.push_back({prefix, deal_targets(topology, chance)});
    topology.targets.push_back(std::move(target));
  }
  return topology;
}

std::string text_of(const Topology& topology) {
  std::string text;
  for (const TargetModel& target : topology.targets) {
    absl::StrAppend(&text, " ", target.listener, target.for_somebody_else ? "(left out)" : "");
    for (const RouteModel& route : target.routes) {
      absl::StrAppend(&text, " ", route.prefix, "→");
      for (const auto& [name, weight] : route.clusters)
        absl::StrAppend(&text, name, ",");
    }
  }
  for (const auto& [name, cluster] : topology.clusters) {
    absl::StrAppend(&text, " ", name, cluster.pick_first ? "(pick_first)" : "", "=");
    if (cluster.kind == ClusterKind::kDns) absl::StrAppend(&text, cluster.dns_name);
    if (cluster.kind == ClusterKind::kAggregate)
      absl::StrAppend(&text, "[", absl::StrJoin(cluster.children, " "), "]");
    for (const PriorityModel& priority : cluster.priorities) {
      absl::StrAppend(&text, "/");
      for (const LocalityModel& locality : priority) {
        absl::StrAppend(&text, locality.zone, ":");
        for (const HostModel& host : locality.hosts)
          absl::StrAppend(&text, host.number + 1, is_served(host) ? " " : "! ");
      }
    }
  }
  return text;
}

std::set<std::string> mutate(Topology& topology, FakeChance& chance) {
  const std::size_t what = chance.below(100);
  if (what < 18) return change_route(topology, chance);
  if (what < 20 || somebody_is_left_out(topology)) return change_virtual_host(topology, chance);
  if (what < 25) return change_route_name(topology, chance);
  if (what < 40) return add_or_replace_cluster(topology, chance);
  if (what < 50) return remove_cluster(topology, chance);
  if (what < 80) return change_endpoints(topology, chance);
  if (what < 92) return change_children(topology, chance);
  return change_policy(topology, chance);
}

void touch_everything(Topology& topology) {
  for (TargetModel& target : topology.targets)
    target.for_somebody_else = false;
  for (const std::string& name : reachable(topology)) {
    if (name == kGhost || topology.clusters.contains(name)) continue;
    ClusterModel cluster;
    cluster.priorities = {{{"back", 1, {{0, false, false}}}}};
    topology.clusters[name] = cluster;
  }
  for (auto& [name, cluster] : topology.clusters) {
    cluster.connect_timeout_seconds = cluster.connect_timeout_seconds == 4 ? 5 : 4;
    if (cluster.kind == ClusterKind::kDns) {
      const bool late = absl::StartsWith(cluster.dns_name, kLate);
      cluster.dns_name =
          late ? cluster.dns_name.substr(sizeof kLate - 1) : kLate + cluster.dns_name;
    }
    for (PriorityModel& priority : cluster.priorities) {
      for (LocalityModel& locality : priority)
        locality.weight += 3;
    }
  }
}

void move_all_hosts(Topology& topology) {
  for (auto& [name, cluster] : topology.clusters) {
    for (PriorityModel& priority : cluster.priorities) {
      for (LocalityModel& locality : priority)
        locality.zone += "m";
    }
  }
}

std::vector<std::string> leaves_of(const Topology& topology, const std::string& cluster) {
  std::vector<std::string> leaves;
  collect_leaves(topology, cluster, leaves);
  return leaves;
}

std::set<std::string> routed(const TargetModel& target) {
  std::set<std::string> names;
  for (const RouteModel& route : target.routes) {
    for (const auto& [name, weight] : route.clusters)
      names.insert(name);
  }
  return names;
}

std::set<std::string> routed(const Topology& topology) {
  std::set<std::string> names;
  for (const TargetModel& target : topology.targets)
    names.merge(routed(target));
  return names;
}

std::set<std::string> reachable(const Topology& topology) {
  std::set<std::string> names;
  for (const std::string& name : routed(topology))
    collect_reachable(topology, name, names);
  return names;
}

std::vector<Address> best_hosts(const ClusterModel& leaf,
                                const std::string& name,
                                const std::vector<Address>& dns_answer) {
  if (leaf.kind == ClusterKind::kDns) return dns_answer;
  const auto best = std::ranges::find_if(leaf.priorities, has_hosts);
  std::vector<Address> hosts;
  if (best == leaf.priorities.end()) return hosts;
  for (const LocalityModel& locality : *best) {
    for (const HostModel& host : locality.hosts) {
      if (is_served(host)) hosts.push_back(address_of(name, host.number));
    }
  }
  return hosts;
}

}  // namespace signalbox::sim
