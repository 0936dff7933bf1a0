// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/topology.hpp"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "lb/health/priority_load.hpp"

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

std::string target_text(const TargetModel& target) {
  std::string text =
      absl::StrCat(" ", target.listener, target.for_somebody_else ? "(left out)" : "");
  if (target.sessions) absl::StrAppend(&text, "(sessions ", target.cookie_path, ")");
  for (const RouteModel& route : target.routes) {
    absl::StrAppend(&text, " ", route.prefix, "→");
    for (const auto& [name, weight] : route.clusters)
      absl::StrAppend(&text, name, ",");
  }
  return text;
}

std::string settings_text(const ClusterModel& cluster) {
  if (cluster.kind == ClusterKind::kAggregate) {
    std::string text;
    if (cluster.mode) text = *cluster.mode == AggregateMode::kTiered ? "(tiered)" : "(by priority)";
    if (cluster.panic_percent) absl::StrAppend(&text, "(panic ", *cluster.panic_percent, "%)");
    return text;
  }
  std::string text = absl::StrCat("(", cluster.policy->name);
  if (drop_percent(cluster) != 0) absl::StrAppend(&text, " drops ", cluster.drop_percent, "%");
  if (limit(cluster)) absl::StrAppend(&text, " at most ", cluster.max_requests);
  if (cluster.ejects) absl::StrAppend(&text, " ejects");
  if (cluster.may_stay == MayStay::kDrainingToo) absl::StrAppend(&text, " keeps draining");
  if (cluster.may_stay == MayStay::kNobody) absl::StrAppend(&text, " keeps nobody");
  if (cluster.idle_seconds) absl::StrAppend(&text, " for ", *cluster.idle_seconds, "s");
  return text + ")";
}

const char* mark_of(const HostModel& host) {
  return host.unhealthy ? "!" : host.draining ? "?" : host.degraded ? "~" : "";
}

std::string cluster_text(const std::string& name, const ClusterModel& cluster) {
  std::string text = absl::StrCat(" ", name, settings_text(cluster), "=");
  if (cluster.kind == ClusterKind::kDns) absl::StrAppend(&text, cluster.dns_name);
  if (cluster.kind == ClusterKind::kAggregate)
    absl::StrAppend(&text, "[", absl::StrJoin(cluster.children, " "), "]");
  for (const PriorityModel& priority : cluster.priorities) {
    absl::StrAppend(&text, "/");
    for (const LocalityModel& locality : priority) {
      absl::StrAppend(&text, locality.name, ":");
      for (const HostModel& host : locality.hosts)
        absl::StrAppend(&text, host.number + 1, mark_of(host), " ");
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

std::string zone_of(const LocalityModel& locality) {
  constexpr char kZones[] = "abc";
  const auto digit = locality.name.find_last_of("0123456789");
  const auto number =
      digit == std::string::npos ? 0U : static_cast<unsigned>(locality.name[digit] - '0');
  return {kZones[number % 3]};
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
  std::string text = topology.tiered ? " tiered" : "";
  if (topology.panic_percent != 0) absl::StrAppend(&text, " panic ", topology.panic_percent, "%");
  if (!topology.zone.empty()) absl::StrAppend(&text, " in zone ", topology.zone);
  for (const TargetModel& target : topology.targets)
    absl::StrAppend(&text, target_text(target));
  for (const auto& [name, cluster] : topology.clusters)
    absl::StrAppend(&text, cluster_text(name, cluster));
  return text;
}

// --- which hosts serve which clusters ----------------------------------------

bool is_served(const HostModel& host) {
  return !host.unhealthy && !host.draining && !host.degraded;
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

namespace {

// Whether calls of the tier may go to the host (ENV-9, ENV-17, ENV-28).
bool is_of(const HostModel& host, Tier::Hosts hosts) {
  const bool fit = !host.unhealthy && !host.draining;
  if (hosts == Tier::Hosts::kHealthy) return fit && !host.degraded;
  if (hosts == Tier::Hosts::kDegraded) return fit && host.degraded;
  return host.unhealthy || !host.draining;
}

std::vector<std::vector<Address>> localities_at(const std::string& leaf,
                                                const ClusterModel& model,
                                                std::size_t priority,
                                                Tier::Hosts part = Tier::Hosts::kHealthy) {
  std::vector<std::vector<Address>> localities;
  for (const LocalityModel& locality : model.priorities[priority]) {
    std::vector<Address> hosts;
    for (const HostModel& host : locality.hosts) {
      if (is_of(host, part)) hosts.push_back(address_of(leaf, host.number));
    }
    if (!hosts.empty()) localities.push_back(std::move(hosts));
  }
  return localities;
}

lb::PriorityHealth health_of(const PriorityModel& priority) {
  const auto count = [&](Tier::Hosts hosts) {
    std::uint64_t number = 0;
    for (const LocalityModel& locality : priority) {
      number += static_cast<std::uint64_t>(std::ranges::count_if(
          locality.hosts, [&](const HostModel& host) { return is_of(host, hosts); }));
    }
    return number;
  };
  return {count(Tier::Hosts::kHealthy), count(Tier::Hosts::kDegraded), count(Tier::Hosts::kAll)};
}

}  // namespace

std::vector<std::vector<Address>> best_localities(const std::string& leaf,
                                                  const ClusterModel& model) {
  if (model.kind == ClusterKind::kDns) return {dns_answer(leaf, model.dns_name)};
  const auto best = best_priority(model);
  if (!best) return {};
  return localities_at(leaf, model, *best);
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

bool is_tiered(const Topology& topology, const std::string& cluster) {
  const auto found = topology.clusters.find(cluster);
  if (found == topology.clusters.end() || found->second.kind != ClusterKind::kAggregate)
    return false;
  const auto of_world = topology.tiered ? AggregateMode::kTiered : AggregateMode::kPriority;
  return found->second.mode.value_or(of_world) == AggregateMode::kTiered;
}

std::vector<Place> serving_places(const Topology& topology, const std::string& cluster) {
  if (!is_tiered(topology, cluster)) {
    const auto leaf = serving_leaf(topology, cluster);
    if (!leaf) return {};
    return {{*leaf, best_priority(topology.clusters.at(*leaf)).value_or(0)}};
  }
  std::vector<Place> row;
  std::vector<lb::PriorityHealth> healths;
  for (const std::string& leaf : leaves_of(topology, cluster)) {
    const ClusterModel& model = topology.clusters.at(leaf);
    const bool by_name = model.kind == ClusterKind::kDns;
    for (std::size_t at = 0; at < (by_name ? 1 : model.priorities.size()); ++at) {
      row.push_back({leaf, at});
      healths.push_back(by_name ? lb::PriorityHealth{1, 0, 1} : health_of(model.priorities[at]));
    }
  }
  // The model uses priority_loads(), which env_priority_load_test checks. The simulator checks that
  // policies apply the loads.
  const unsigned panic =
      topology.clusters.at(cluster).panic_percent.value_or(topology.panic_percent);
  const auto loads = lb::priority_loads(healths, panic);
  std::vector<Place> places;
  for (std::size_t at = 0; at < row.size(); ++at) {
    const auto add = [&](unsigned percent, Tier::Hosts hosts) {
      if (percent == 0) return;
      Place place = row[at];
      place.hosts = loads[at].panic ? Tier::Hosts::kAll : hosts;
      place.percent = percent;
      places.push_back(std::move(place));
    };
    add(loads[at].healthy, Tier::Hosts::kHealthy);
    add(loads[at].degraded, Tier::Hosts::kDegraded);
  }
  return places;
}

std::vector<Address> hosts_at(const Topology& topology, const Place& place) {
  const ClusterModel& model = topology.clusters.at(place.leaf);
  if (model.kind == ClusterKind::kDns) return dns_answer(place.leaf, model.dns_name);
  std::vector<Address> all;
  if (place.priority >= model.priorities.size()) return all;
  for (const auto& hosts : localities_at(place.leaf, model, place.priority, place.hosts))
    all.insert(all.end(), hosts.begin(), hosts.end());
  return all;
}

std::set<std::string> tiered_leaves(const Topology& topology) {
  std::set<std::string> leaves;
  for (const std::string& cluster : routed(topology)) {
    if (!is_tiered(topology, cluster)) continue;
    for (const std::string& leaf : leaves_of(topology, cluster))
      leaves.insert(leaf);
  }
  return leaves;
}

int number_of(const Address& address) {
  const std::vector<std::string> parts = absl::StrSplit(address.str(), absl::ByAnyChar(".:"));
  return std::stoi(parts.at(3)) - 1;
}

const HostModel* find_host(const ClusterModel& leaf, const Address& address) {
  const int number = number_of(address);
  for (const PriorityModel& priority : leaf.priorities) {
    for (const LocalityModel& locality : priority) {
      for (const HostModel& host : locality.hosts) {
        if (host.number == number) return &host;
      }
    }
  }
  return nullptr;
}

bool has_sessions(const TargetModel& target, const std::string& path) {
  return target.sessions && absl::StartsWith(path, target.cookie_path);
}

bool may_stay(const ClusterModel& leaf, const HostModel& host) {
  if (host.unhealthy || leaf.may_stay == MayStay::kNobody) return false;
  if (host.degraded && !host.draining) return false;
  return !host.draining || leaf.may_stay == MayStay::kDrainingToo;
}

Duration idle_timeout(const ClusterModel& leaf) {
  return std::chrono::seconds(leaf.idle_seconds.value_or(3600));
}

std::set<Address> all_served(const Topology& topology) {
  std::set<Address> all;
  const std::set<std::string> tiered = tiered_leaves(topology);
  for (const std::string& name : reachable(topology)) {
    const auto found = topology.clusters.find(name);
    if (found == topology.clusters.end()) continue;
    const ClusterModel& model = found->second;
    if (model.kind == ClusterKind::kDns) {
      for (const Address& address : dns_answer(name, model.dns_name))
        all.insert(address);
    }
    for (const PriorityModel& priority : model.priorities) {
      for (const LocalityModel& locality : priority) {
        for (const HostModel& host : locality.hosts) {
          const auto part = tiered.contains(name) ? Tier::Hosts::kAll : Tier::Hosts::kHealthy;
          if (is_of(host, part)) all.insert(address_of(name, host.number));
        }
      }
    }
  }
  return all;
}

std::vector<std::string> reported_metrics(const std::string& cluster) {
  switch (number_of(cluster) % 3) {
    case 0:
      return {};
    case 1:
      return {"named_metrics.*", "mem_utilization", "application_utilization"};
    default:
      return {"cpu_utilization", "named_metrics.queue", "unknown"};
  }
}

unsigned drop_percent(const ClusterModel& leaf) {
  return leaf.kind == ClusterKind::kEds ? leaf.drop_percent : 0;
}

std::optional<unsigned> limit(const ClusterModel& leaf) {
  if (leaf.max_requests == ClusterModel().max_requests) return std::nullopt;
  return leaf.max_requests;
}

}  // namespace signalbox::sim
