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

bool has_hosts(const PriorityModel& priority) {
  return std::ranges::any_of(priority, [](const LocalityModel& locality) {
    return std::ranges::any_of(locality.hosts, is_served);
  });
}

// --- text --------------------------------------------------------------------

std::string text_of(const TargetModel& target) {
  std::string text =
      absl::StrCat(" ", target.listener, target.for_somebody_else ? "(left out)" : "");
  for (const RouteModel& route : target.routes) {
    absl::StrAppend(&text, " ", route.prefix, "→");
    for (const auto& [name, weight] : route.clusters)
      absl::StrAppend(&text, name, ",");
  }
  return text;
}

std::string settings_text(const ClusterModel& cluster) {
  if (cluster.kind == ClusterKind::kAggregate) return "";
  std::string text = absl::StrCat("(", cluster.policy->name);
  if (drop_percent(cluster) != 0) absl::StrAppend(&text, " drops ", cluster.drop_percent, "%");
  if (limit(cluster)) absl::StrAppend(&text, " at most ", cluster.max_requests);
  if (cluster.ejects) absl::StrAppend(&text, " ejects");
  return text + ")";
}

std::string text_of(const std::string& name, const ClusterModel& cluster) {
  std::string text = absl::StrCat(" ", name, settings_text(cluster), "=");
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
  return text;
}

}  // namespace

// --- names -------------------------------------------------------------------

std::string cluster_name(std::size_t number) {
  return absl::StrCat("c", number);
}

std::size_t number_of(const std::string& cluster) {
  std::size_t number = 0;
  return absl::SimpleAtoi(cluster.substr(1), &number) ? number : 0;
}

Address address_of(const std::string& cluster, int host) {
  return Address(absl::StrCat("10.0.", number_of(cluster), ".", host + 1, ":80"));
}

std::string owner_of(const Address& address) {
  const std::vector<std::string> parts = absl::StrSplit(address.str(), '.');
  return absl::StrCat("c", parts.at(2));
}

std::vector<Address> dns_answer(const std::string& cluster, const std::string& dns_name) {
  if (absl::StartsWith(dns_name, "late-")) return {address_of(cluster, 2), address_of(cluster, 3)};
  return {address_of(cluster, 0), address_of(cluster, 1)};
}

std::string text_of(const Topology& topology) {
  std::string text;
  for (const TargetModel& target : topology.targets)
    absl::StrAppend(&text, text_of(target));
  for (const auto& [name, cluster] : topology.clusters)
    absl::StrAppend(&text, text_of(name, cluster));
  return text;
}

// --- who serves whom ---------------------------------------------------------

bool is_served(const HostModel& host) {
  return !host.unhealthy && !host.draining;
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

std::optional<std::size_t> best_priority(const ClusterModel& leaf) {
  const auto best = std::ranges::find_if(leaf.priorities, has_hosts);
  if (best == leaf.priorities.end()) return std::nullopt;
  return static_cast<std::size_t>(best - leaf.priorities.begin());
}

std::vector<std::vector<Address>> best_localities(const std::string& leaf,
                                                  const ClusterModel& model) {
  if (model.kind == ClusterKind::kDns) return {dns_answer(leaf, model.dns_name)};
  std::vector<std::vector<Address>> localities;
  const auto best = best_priority(model);
  if (!best) return localities;
  for (const LocalityModel& locality : model.priorities[*best]) {
    std::vector<Address> hosts;
    for (const HostModel& host : locality.hosts) {
      if (is_served(host)) hosts.push_back(address_of(leaf, host.number));
    }
    if (!hosts.empty()) localities.push_back(std::move(hosts));
  }
  return localities;
}

std::vector<Address> best_hosts(const std::string& leaf, const ClusterModel& model) {
  std::vector<Address> all;
  for (const std::vector<Address>& hosts : best_localities(leaf, model))
    all.insert(all.end(), hosts.begin(), hosts.end());
  return all;
}

std::optional<std::string> serving_leaf(const Topology& topology, const std::string& cluster) {
  for (const std::string& leaf : leaves_of(topology, cluster)) {
    if (!best_hosts(leaf, topology.clusters.at(leaf)).empty()) return leaf;
  }
  return std::nullopt;
}

unsigned drop_percent(const ClusterModel& leaf) {
  return leaf.kind == ClusterKind::kEds ? leaf.drop_percent : 0;
}

std::optional<unsigned> limit(const ClusterModel& leaf) {
  if (leaf.max_requests == ClusterModel().max_requests) return std::nullopt;
  return leaf.max_requests;
}

}  // namespace signalbox::sim
