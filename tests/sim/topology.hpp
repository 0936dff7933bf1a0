// SPDX-License-Identifier: Apache-2.0
//
// Topology — what the control plane says, as a model: routes, clusters, endpoints; and what a
// client that has seen all of it must do.
//
//   history.hpp ─▶ [Topology] ─▶ resources.hpp ─▶ FakeControlPlane
//                       └▶ expectations: leaves, the priority in use ─▶ quiescence.hpp, books.hpp
//
// Each leaf cluster has addresses of its own, so that a connection tells whose it is.

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "messages/cluster.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"
#include "tests/sim/policies.hpp"

namespace signalbox::sim {

inline constexpr int kClusters = 7;  ///< c0 … c6; children of an aggregate have smaller numbers.
inline constexpr int kHosts = 6;     ///< The most that a leaf has.

struct HostModel {
  int number = 0;  ///< Which address of its cluster.
  unsigned weight = 1;
  bool draining = false;   ///< Left out for who has no session there.
  bool unhealthy = false;  ///< Left out by the parser; in tiered mode it has calls in panic.
  bool degraded = false;   ///< So is this one; there it has what the healthy ones leave.
};

struct LocalityModel {
  std::string zone;
  unsigned weight = 1;
  std::vector<HostModel> hosts;
};

using PriorityModel = std::vector<LocalityModel>;

enum class ClusterKind : std::uint8_t { kEds, kDns, kAggregate };

/// Whom sessions may stay on: override_host_status (A55-4, A55-5).
enum class MayStay : std::uint8_t { kServed, kDrainingToo, kNobody };

struct ClusterModel {
  ClusterKind kind = ClusterKind::kEds;
  const PolicyRow* policy = &policy_table().front();
  unsigned connect_timeout_seconds = 5;
  unsigned drop_percent = 0;      ///< EDS.
  unsigned max_requests = 1024;   ///< At once.
  bool ejects = false;            ///< Hosts that answer badly are set aside.
  unsigned ejection_seconds = 1;  ///< How often it is looked for them.
  MayStay may_stay = MayStay::kServed;
  std::optional<unsigned> idle_seconds;   ///< Sessions keep a host so long; none: for an hour.
  std::vector<PriorityModel> priorities;  ///< EDS.
  std::string dns_name;                   ///< DNS: "host:port".
  std::vector<std::string> children;      ///< Aggregate.
  std::optional<AggregateMode> mode;      ///< Of an aggregate; none: the world's.
  std::optional<unsigned> panic_percent;  ///< The same.
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
  bool sessions = false;    ///< The filter that keeps sessions.
  std::string cookie_path;  ///< Whose calls have sessions; empty: all.
};

struct Topology {
  std::vector<TargetModel> targets;
  std::map<std::string, ClusterModel> clusters;
  /// The runtime spreads the calls of aggregates by health (ENV), unless they say themselves.
  bool tiered = false;
  unsigned panic_percent = 0;  ///< The runtime's, of those that are spread.
};

/// A tier: the healthy hosts of a priority of a leaf, its degraded ones, or in panic all.
struct Place {
  std::string leaf;
  std::size_t priority = 0;
  Tier::Hosts hosts = Tier::Hosts::kHealthy;
  unsigned percent = 100;  ///< Of the calls.
};

/// "10.1.2.3:80": the address of a host of the cluster.
Address address_of(const std::string& cluster, int host);

/// "c3", and the number in it.
std::string cluster_name(std::size_t number);
std::size_t number_of(const std::string& cluster);

/// The cluster whose host it is.
std::string owner_of(const Address& address);

/// For stories: routes, and clusters with their hosts by priority.
std::string text_of(const Topology& topology);

/// A cluster that routes may name and that never exists.
extern const char kGhost[];

/// Whether the host is given calls in priority mode.
bool is_served(const HostModel& host);

/// The leaves that calls to this cluster can use, best first (A37); none: it cannot be had.
std::vector<std::string> leaves_of(const Topology& topology, const std::string& cluster);

/// The clusters that routes name: of one target, or of all.
std::set<std::string> routed(const TargetModel& target);
std::set<std::string> routed(const Topology& topology);

/// All clusters that a client has to know: those routed, and all below them.
std::set<std::string> reachable(const Topology& topology);

/// What DNS says about a name of a cluster.
std::vector<Address> dns_answer(const std::string& cluster, const std::string& dns_name);

/// The priority that a leaf serves from when everything is up; none: no priority has a host.
std::optional<std::size_t> best_priority(const ClusterModel& leaf);

/// The hosts that it serves from then, by locality; those of a name are in one.
std::vector<std::vector<Address>> best_localities(const std::string& leaf,
                                                  const ClusterModel& model);
std::vector<Address> best_hosts(const std::string& leaf, const ClusterModel& model);

/// The leaf that serves the calls of a cluster when everything is up; none: nobody can.
std::optional<std::string> serving_leaf(const Topology& topology, const std::string& cluster);

/// Whether the cluster is an aggregate whose calls are spread over priorities (ENV).
bool is_tiered(const Topology& topology, const std::string& cluster);

/// Where calls of a cluster go when everything is up: to the best priority of the best leaf; in
/// tiered mode to each tier that has a load. Empty: nobody can take them.
std::vector<Place> serving_places(const Topology& topology, const std::string& cluster);

/// The hosts that are served there.
std::vector<Address> hosts_at(const Topology& topology, const Place& place);

/// The leaves of tiered aggregates that are routed.
std::set<std::string> tiered_leaves(const Topology& topology);

/// The host of this address in the leaf; null: EDS does not name it.
const HostModel* find_host(const ClusterModel& leaf, const Address& address);

/// Whether calls of this path have sessions.
bool has_sessions(const TargetModel& target, const std::string& path);

/// Whether a session may stay there, if there is somebody to take its calls.
bool may_stay(const ClusterModel& leaf, const HostModel& host);
Duration idle_timeout(const ClusterModel& leaf);

/// All hosts that a policy may hold for calls of no session.
std::set<Address> all_served(const Topology& topology);

/// Whether calls may be refused although hosts are up: dropped, or over the limit.
unsigned drop_percent(const ClusterModel& leaf);
std::optional<unsigned> limit(const ClusterModel& leaf);

}  // namespace signalbox::sim
