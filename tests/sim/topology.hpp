// SPDX-License-Identifier: Apache-2.0
//
// Topology — a model of the control plane's configuration: routes, clusters, endpoints. It also
// computes what a client must do once it has the whole configuration.
//
//   history.hpp ─▶ [Topology] ─▶ resources.hpp ─▶ FakeControlPlane
//                       └▶ expectations: leaves, the priority in use ─▶ quiescence.hpp, books.hpp
//
// Each leaf cluster has addresses of its own, so that an address identifies its cluster.

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

/// The clusters are c0 … c6. The children of an aggregate have smaller numbers than the aggregate.
inline constexpr int kClusters = 7;
inline constexpr int kHosts = 6;  ///< The most hosts that a leaf has.

struct HostModel {
  int number = 0;  ///< The number of the address within its cluster.
  unsigned weight = 1;
  bool draining = false;   ///< The host gets only calls of sessions that are on it.
  bool unhealthy = false;  ///< The host gets no calls, except in tiered mode in panic.
  /// The host gets no calls in priority mode. In tiered mode it gets the calls that are too many
  /// for the healthy hosts.
  bool degraded = false;
};

/// The region of all zones, and of the client.
inline constexpr char kRegion[] = "sim";

struct LocalityModel {
  std::string name;  ///< The sub-zone of EDS. Its last digit decides the zone: zone_of().
  unsigned weight = 1;
  std::vector<HostModel> hosts;
};

using PriorityModel = std::vector<LocalityModel>;

enum class ClusterKind : std::uint8_t { kEds, kDns, kAggregate };

/// The override_host_status (A55-4, A55-5): sessions may stay on hosts that get calls, on DRAINING
/// hosts too, or on no host.
enum class MayStay : std::uint8_t { kServed, kDrainingToo, kNobody };

struct ClusterModel {
  ClusterKind kind = ClusterKind::kEds;
  const PolicyRow* policy = &policy_table().front();
  unsigned connect_timeout_seconds = 5;
  unsigned drop_percent = 0;      ///< EDS only.
  unsigned max_requests = 1024;   ///< The most concurrent requests.
  unsigned max_connections = 1;   ///< The most connections to one host (A105).
  bool ejects = false;            ///< Outlier detection ejects hosts that fail too many calls.
  unsigned ejection_seconds = 1;  ///< The interval of outlier detection.
  MayStay may_stay = MayStay::kServed;
  std::optional<unsigned> idle_seconds;   ///< The idle_timeout of sessions; nullopt: an hour.
  std::vector<PriorityModel> priorities;  ///< EDS only.
  std::string dns_name;                   ///< DNS only: "host:port".
  std::vector<std::string> children;      ///< Aggregates only.
  std::optional<AggregateMode> mode;      ///< Aggregates only; nullopt: the runtime's mode.
  std::optional<unsigned> panic_percent;  ///< Aggregates only; nullopt: the runtime's threshold.
};

struct RouteModel {
  std::string prefix;
  std::vector<std::pair<std::string, unsigned>> clusters;  ///< Clusters and their weights.
};

/// The configuration of one channel; all targets share the clusters.
struct TargetModel {
  std::string listener;
  bool inline_routes = false;
  bool for_somebody_else = false;  ///< No virtual host has the target's domain.
  std::string route_name;
  std::vector<RouteModel> routes;
  bool sessions = false;    ///< Whether the listener has the filter stateful_session.
  std::string cookie_path;  ///< The path of calls with sessions; empty: all paths.
};

struct Topology {
  std::vector<TargetModel> targets;
  std::map<std::string, ClusterModel> clusters;
  /// Whether the runtime's mode of aggregates is kTiered (ENV). An aggregate's own mode, if set, is
  /// used instead.
  bool tiered = false;
  unsigned panic_percent = 0;  ///< The runtime's panic threshold for aggregates in tiered mode.
  std::string zone;            ///< The client's zone (the bootstrap's node); empty: none.
};

/// One tier: the healthy hosts of one priority of a leaf, or its degraded hosts, or (in panic) all
/// its hosts but DRAINING ones.
struct Place {
  std::string leaf;
  std::size_t priority = 0;
  Tier::Hosts hosts = Tier::Hosts::kHealthy;
  unsigned percent = 100;  ///< The share of the cluster's calls.
};

/// The address of a host of the cluster: "10.0.2.4:80" for host 3 of cluster c2.
Address address_of(const std::string& cluster, int host);

/// cluster_name(3) is "c3", and number_of("c3") is 3.
std::string cluster_name(std::size_t number);
std::size_t number_of(const std::string& cluster);

/// Whether the cluster, if it is a leaf, has an lrs_server: every second one does.
inline bool has_load_reports(const std::string& cluster) {
  return number_of(cluster) % 2 == 0;
}

/// The values of its endpoints' load reports that the cluster passes on to the control plane: CDS
/// lrs_report_endpoint_metrics (A64, A85). Empty: all named metrics, under their own names.
std::vector<std::string> reported_metrics(const std::string& cluster);

/// The zone of a locality: "a", "b" or "c".
std::string zone_of(const LocalityModel& locality);

/// The cluster that owns the host.
std::string owner_of(const Address& address);

/// The topology as text for the trace: its routes, and its clusters with their hosts by priority.
std::string text_of(const Topology& topology);

/// The name of a cluster that routes may name and that never exists.
extern const char kGhost[];

/// Whether the host gets calls in priority mode.
bool is_served(const HostModel& host);

/// The leaves that calls to this cluster can use, best first (A37); empty: the cluster is in error.
std::vector<std::string> leaves_of(const Topology& topology, const std::string& cluster);

/// The clusters that the routes of one target, or of all targets, name.
std::set<std::string> routed(const TargetModel& target);
std::set<std::string> routed(const Topology& topology);

/// All clusters that a client has to know: routed clusters, and all clusters below them.
std::set<std::string> reachable(const Topology& topology);

/// The addresses to which the cluster's `dns_name` resolves.
std::vector<Address> dns_answer(const std::string& cluster, const std::string& dns_name);

/// The priority of the leaf that gets the leaf's calls when every host is up; nullopt: no priority
/// has a host that may get calls.
std::optional<std::size_t> best_priority(const ClusterModel& leaf);

/// The hosts of best_priority(), by locality. All addresses of a DNS name are in one locality.
std::vector<std::vector<Address>> best_localities(const std::string& leaf,
                                                  const ClusterModel& model);
std::vector<Address> best_hosts(const std::string& leaf, const ClusterModel& model);

/// The leaf that serves a cluster's calls when everything is up; nullopt: no leaf can.
std::optional<std::string> serving_leaf(const Topology& topology, const std::string& cluster);

/// Whether the cluster is an aggregate whose calls are spread over priorities (ENV).
bool is_tiered(const Topology& topology, const std::string& cluster);

/// The places that take a cluster's calls when everything is up: the best priority of the best
/// leaf, or in tiered mode each tier with a load. Empty: no host can take them.
std::vector<Place> serving_places(const Topology& topology, const std::string& cluster);

/// The hosts of a place.
std::vector<Address> hosts_at(const Topology& topology, const Place& place);

/// The leaves of routed tiered aggregates.
std::set<std::string> tiered_leaves(const Topology& topology);

/// The number of a host within its cluster: 3 for "10.0.2.4:80".
int number_of(const Address& address);

/// The host of this address in the leaf; null: EDS does not name it.
const HostModel* find_host(const ClusterModel& leaf, const Address& address);

/// Whether calls of this path have sessions.
bool has_sessions(const TargetModel& target, const std::string& path);

/// Whether the leaf's override_host_status lets a session stay on the host.
bool may_stay(const ClusterModel& leaf, const HostModel& host);
Duration idle_timeout(const ClusterModel& leaf);

/// All hosts that a policy may keep connected for calls without a session.
std::set<Address> all_served(const Topology& topology);

/// The two settings by which a leaf refuses calls although its hosts are up: the percentage of
/// calls to drop, and the limit of concurrent calls.
unsigned drop_percent(const ClusterModel& leaf);
std::optional<unsigned> limit(const ClusterModel& leaf);

}  // namespace signalbox::sim
