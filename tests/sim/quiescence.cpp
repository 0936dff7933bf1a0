// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/quiescence.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "tests/sim/sessions.hpp"

namespace signalbox::sim {
namespace {

std::set<Address> hosts_of_session(const Calls::Ending& ending,
                                   const TargetModel& target,
                                   const Topology& topology) {
  const auto cookie = read_cookie(ending.cookie);
  if (!cookie) return {};
  return must_stay_on(*cookie, ending.path, ending.cluster, target, topology);
}

std::set<std::string> names_of_session(const Calls::Ending& ending,
                                       const TargetModel& target,
                                       const Topology& topology) {
  const auto cookie = read_cookie(ending.cookie);
  if (!cookie) return {};
  return may_stay_in(*cookie, ending.path, ending.cluster, target, topology);
}

bool may_refuse(const ClusterModel& leaf) {
  return drop_percent(leaf) != 0 || limit(leaf).has_value();
}

// Checks the connections to this leaf's hosts, which `trees` policy trees use. Removes them from
// `wanted`.
void take_what_is_needed(const std::string& leaf,
                         const ClusterModel& model,
                         int trees,
                         std::map<Address, int>& wanted,
                         FakeComplaints& complaints) {
  // All addresses of a DNS name are one endpoint, and one of them is connected.
  const bool by_name = model.kind == ClusterKind::kDns;
  const Connects connects = model.policy->connects;
  // When all calls are dropped, no call asks pick_first to replace a lost connection.
  const auto may_be = [&, all_dropped = drop_percent(model) >= 100](int connections) {
    return connections == trees || (all_dropped && connections < trees);
  };
  int in_all = 0;
  const auto localities = best_localities(leaf, model);
  for (const std::vector<Address>& hosts : localities) {
    int in_locality = 0;
    for (const Address& host : hosts) {
      const int connections = wanted[host];
      wanted.erase(host);
      in_locality += connections;
      const bool asked = connects == Connects::kAsked && connections <= trees;
      complaints.require(connections == trees || asked || by_name || connects != Connects::kAll,
                         "every host in use has its connections",
                         absl::StrCat(host.str(), ": ", connections, " for ", trees));
      complaints.require(connections <= trees || by_name || connects == Connects::kOne,
                         "nobody has two connections to a host",
                         absl::StrCat(host.str(), ": ", connections, " for ", trees));
    }
    in_all += in_locality;
    complaints.require(connects != Connects::kOnePerLocality || may_be(in_locality),
                       "who picks first in each locality has one connection there",
                       absl::StrCat(hosts.front().str(), " …: ", in_locality, " for ", trees));
  }
  const bool one = connects == Connects::kOne || (by_name && connects != Connects::kAsked);
  complaints.require(!one || may_be(in_all),
                     "who picks first has one connection",
                     absl::StrCat(leaf, ": ", in_all, " for ", trees));
}

// For each leaf, the number of policy trees that use it now: one for each cluster that a target
// routes to and that this leaf serves now.
std::map<std::string, int> trees_by_leaf(const Topology& topology) {
  std::map<std::string, int> trees;
  for (const TargetModel& target : topology.targets) {
    for (const std::string& cluster : routed(target)) {
      if (const auto leaf = serving_leaf(topology, cluster)) ++trees[*leaf];
    }
  }
  // Leaves of tiered aggregates are left out, because several priorities of them are connected. See
  // loads_are_of_a_hundred().
  for (const std::string& leaf : tiered_leaves(topology))
    trees.erase(leaf);
  return trees;
}

std::string text(const std::optional<std::set<std::string>>& names) {
  return names ? absl::StrCat("{", absl::StrJoin(*names, " "), "}") : "no stream";
}

}  // namespace

void subscribed_is_what_can_be_reached(const Setting& setting,
                                       const Topology& topology,
                                       FakeComplaints& complaints) {
  const std::set<std::string> clusters = reachable(topology);
  std::set<std::string> leaves;
  for (const std::string& name : clusters) {
    const auto found = topology.clusters.find(name);
    if (found != topology.clusters.end() && found->second.kind == ClusterKind::kEds)
      leaves.insert(name);
  }
  std::set<std::string> listeners;
  std::set<std::string> routes;
  for (const TargetModel& target : topology.targets) {
    listeners.insert(target.listener);
    if (!target.inline_routes) routes.insert(target.route_name);
  }
  const std::map<ResourceType, std::set<std::string>> expected = {
      {ResourceType::kListener, listeners},
      {ResourceType::kRouteConfig, routes},
      {ResourceType::kCluster, clusters},
      {ResourceType::kEndpoints, leaves},
  };
  for (const auto& [type, names] : expected) {
    const auto actual = setting.control_plane->subscribed(type);
    complaints.require(actual == names,
                       "subscribed is what can be reached [A37-15]",
                       absl::StrCat(to_string(type), ": ", text(actual), ", not ", text(names)));
  }
}

void every_response_was_answered(const Setting& setting, FakeComplaints& complaints) {
  complaints.require(setting.control_plane->unanswered() == 0,
                     "every response was answered",
                     absl::StrCat(setting.control_plane->unanswered(), " were not"));
}

void calls_go_to_the_best_hosts(const Calls& calls,
                                const TargetModel& target,
                                const Topology& topology,
                                FakeComplaints& complaints) {
  const std::set<std::string> names = routed(target);
  for (const auto& [number, ending] : calls.endings()) {
    complaints.require(
        names.contains(ending.cluster),
        "calls are routed by the last valid configuration",
        absl::StrCat("call ", number, ": ", ending.cluster, " ", ending.status.ToString()));
    if (!names.contains(ending.cluster)) continue;
    const std::set<Address> kept = hosts_of_session(ending, target, topology);
    std::set<std::string> leaves;
    std::set<Address> hosts;
    if (!kept.empty()) leaves.insert(owner_of(*kept.begin()));
    for (const Place& place : serving_places(topology, ending.cluster)) {
      if (kept.empty()) leaves.insert(place.leaf);
      const std::vector<Address> there = hosts_at(topology, place);
      hosts.insert(there.begin(), there.end());
    }
    for (const std::string& leaf : names_of_session(ending, target, topology)) {
      leaves.insert(leaf);
      const std::vector<Address> there = hosts_at(topology, {leaf, 0});
      hosts.insert(there.begin(), there.end());
    }
    const bool completed = ending.state == CallState::kCompleted;
    const bool refused = ending.state == CallState::kDropped &&
                         std::ranges::any_of(leaves, [&](const std::string& leaf) {
                           return may_refuse(topology.clusters.at(leaf));
                         });
    complaints.require(completed == !leaves.empty() || refused,
                       "calls complete exactly where somebody can serve them",
                       absl::StrCat("call ",
                                    number,
                                    " to ",
                                    ending.cluster,
                                    " in state ",
                                    static_cast<int>(ending.state),
                                    " ",
                                    ending.status.ToString()));
    if (!completed || leaves.empty()) continue;
    const std::string leaf = owner_of(*ending.address);
    complaints.require(drop_percent(topology.clusters.at(leaf)) < 100,
                       "nothing of what is to be dropped completes [A32]",
                       leaf);
    // Calls that a session keeps on a host are checked by sessions_stay_where_they_may().
    if (!kept.empty()) continue;
    complaints.require(
        hosts.contains(*ending.address),
        "calls go to the best hosts that are up, those of tiers to theirs [A56, ENV-4]",
        absl::StrCat("call ", number, " to ", ending.cluster, " chose ", ending.address->str()));
  }
}

void nobody_waits_without_a_reason(const Calls& calls,
                                   const TargetModel& target,
                                   const Topology& topology,
                                   FakeComplaints& complaints) {
  const std::set<std::string> names = routed(target);
  for (const auto& [number, call] : calls.living()) {
    if (call.state != CallState::kWaiting) continue;
    const std::string cluster =
        call.pick.cluster() == nullptr ? "(none)" : call.pick.cluster()->name().str();
    const bool told_why = call.pick.outcome() == PickOutcome::kFail;
    complaints.require(
        call.wait_for_ready && told_why && serving_places(topology, cluster).empty(),
        "no pick queues for ever",
        absl::StrCat("call ", number, " waits for ", cluster, ": ", call.pick.status().ToString()));
    complaints.require(names.contains(cluster),
                       "no call waits for a cluster that was deleted [A31-17]",
                       absl::StrCat("call ", number, " waits for ", cluster));
  }
}

void clusters_of_calls_are_subscribed(const Calls& calls,
                                      const Setting& setting,
                                      FakeComplaints& complaints) {
  const auto names = setting.control_plane->subscribed(ResourceType::kCluster);
  for (const auto& [ref, count] : calls.references()) {
    complaints.require(names && names->contains(ref->name().str()),
                       "what calls hold is subscribed to [A31-15]",
                       absl::StrCat(ref->name().str(), " is not in ", text(names)));
  }
}

void no_note_is_left_of_a_lost_control_plane(const lb::Snapshot& snapshot,
                                             FakeComplaints& complaints) {
  if (snapshot.notes == nullptr) return;
  const auto require = [&](const std::string& note) {
    complaints.require(!absl::StrContains(note, "xDS server"),
                       "no note is left of a lost control plane [A88]",
                       note);
  };
  require(snapshot.notes->target);
  for (const auto& [cluster, note] : snapshot.notes->clusters)
    require(note);
}

void connections_are_those_that_are_needed(const Setting& setting,
                                           const Topology& topology,
                                           FakeComplaints& complaints) {
  std::map<Address, int> wanted = setting.connector->wanted();
  for (const auto& [leaf, count] : trees_by_leaf(topology))
    take_what_is_needed(leaf, topology.clusters.at(leaf), count, wanted, complaints);
  const std::set<std::string> tiered = tiered_leaves(topology);
  const std::set<Address> served = all_served(topology);
  for (const auto& [address, count] : wanted) {
    if (tiered.contains(owner_of(address)) && served.contains(address)) continue;
    complaints.require(
        count == 0, "no connection is leaked", absl::StrCat(address.str(), ": ", count));
  }
}

void hosts_that_move_keep_their_connections(
    const std::map<Address, std::set<std::uint64_t>>& before,
    const Setting& setting,
    const Topology& topology,
    FakeComplaints& complaints) {
  const auto now = setting.connector->standing();
  for (const auto& [leaf, trees] : trees_by_leaf(topology)) {
    const ClusterModel& model = topology.clusters.at(leaf);
    // Only policies that connect to all hosts are checked. DNS clusters are left out: one address
    // is connected, and further addresses if a session's cookie names them.
    if (model.policy->connects != Connects::kAll || model.kind == ClusterKind::kDns) continue;
    for (const Address& host : best_hosts(leaf, model)) {
      const auto then = before.find(host);
      const auto found = now.find(host);
      if (then == before.end()) continue;
      std::vector<std::uint64_t> kept;
      if (found != now.end())
        std::ranges::set_intersection(then->second, found->second, std::back_inserter(kept));
      // Each tree needs one connection. A further connection, which only a session kept, may have
      // been released.
      const auto needed = std::min(then->second.size(), static_cast<std::size_t>(trees));
      complaints.require(
          kept.size() >= needed, "an endpoint that moves keeps its connection", host.str());
    }
  }
}

void nothing_is_left(const Setting& setting, const Stage& stage, FakeComplaints& complaints) {
  const auto none = [&](std::size_t count, const char* what) {
    complaints.require(count == 0, "nothing is left after the end", absl::StrCat(count, " ", what));
  };
  none(stage.living(), "actors");
  none(setting.control_plane->streams(), "streams");
  none(setting.load_server->streams(), "streams of load reports");
  none(setting.load_streams->watches(), "watches of endpoints' load");
  none(setting.connector->attempts(), "attempts");
  none(setting.connector->connections(), "connections");
  none(setting.reclaimer->pending_snapshots(), "snapshots that wait");
  none(setting.reclaimer->pending_objects(), "objects that wait");
}

}  // namespace signalbox::sim
