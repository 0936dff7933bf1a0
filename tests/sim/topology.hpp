// SPDX-License-Identifier: Apache-2.0
//
// Topology — what the control plane says, as a model: routes, clusters, endpoints; how it changes
// at random; and what a client that has seen all of it must do.
//
//   chance ─▶ mutate ─▶ [Topology] ─▶ resources.hpp ─▶ FakeControlPlane
//                            └▶ expectations: leaves, the priority in use ─▶ quiescence.hpp
//
// Each leaf cluster has addresses of its own, so that a connection tells whose it is.

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "tests/support/fake_chance.hpp"

namespace signalbox::sim {

using testing::FakeChance;

struct HostModel {
  int number = 0;          ///< Which address of its cluster.
  bool draining = false;   ///< Left out for who has no session there.
  bool unhealthy = false;  ///< Left out by the parser.
};

struct LocalityModel {
  std::string zone;
  unsigned weight = 1;
  std::vector<HostModel> hosts;
};

using PriorityModel = std::vector<LocalityModel>;

enum class ClusterKind : std::uint8_t { kEds, kDns, kAggregate };

struct ClusterModel {
  ClusterKind kind = ClusterKind::kEds;
  bool pick_first = false;
  unsigned connect_timeout_seconds = 5;
  std::vector<PriorityModel> priorities;  ///< EDS.
  std::string dns_name;                   ///< DNS: "host:port".
  std::vector<std::string> children;      ///< Aggregate.
};

struct RouteModel {
  std::string prefix;
  std::vector<std::pair<std::string, unsigned>> clusters;  ///< And their weights.
};

/// What one channel is told; the clusters are everybody's.
struct TargetModel {
  std::string listener;
  bool inline_routes = false;
  bool for_somebody_else = false;  ///< No virtual host is ours.
  std::string route_name;
  std::vector<RouteModel> routes;
};

struct Topology {
  std::vector<TargetModel> targets;
  std::map<std::string, ClusterModel> clusters;
};

/// "10.1.2.3:80": the address of a host of the cluster.
Address address_of(const std::string& cluster, int host);

/// The cluster whose host it is.
std::string owner_of(const Address& address);

/// A first world: one target or two, routes to a few clusters of every kind.
Topology make_topology(FakeChance& chance);

/// For stories: routes, and clusters with their hosts by priority.
std::string text_of(const Topology& topology);

/// What a mutation touched: names of clusters, or "" for listeners and routes.
std::set<std::string> mutate(Topology& topology, FakeChance& chance);

/// Changes a little of every leaf, so that each policy is told something new; what routes and
/// aggregates name exists from now on (but for the ghost, which never does).
void touch_everything(Topology& topology);

/// Every host of every leaf moves to another locality of its priority's place.
void move_all_hosts(Topology& topology);

/// A cluster that routes may name and that never exists.
extern const char kGhost[];

/// The leaves that calls to this cluster can use, best first (A37); none: it cannot be had.
std::vector<std::string> leaves_of(const Topology& topology, const std::string& cluster);

/// The clusters that routes name: of one target, or of all.
std::set<std::string> routed(const TargetModel& target);
std::set<std::string> routed(const Topology& topology);

/// All clusters that a client has to know: those routed, and all below them.
std::set<std::string> reachable(const Topology& topology);

/// The hosts that a leaf serves from when everything is up: its best priority that has any.
std::vector<Address> best_hosts(const ClusterModel& leaf,
                                const std::string& name,
                                const std::vector<Address>& dns_answer);

}  // namespace signalbox::sim
