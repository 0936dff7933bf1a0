// SPDX-License-Identifier: Apache-2.0
//
// WatchedResources — all resources that one target watches, with their last values and errors.
//
//   events ─▶ record… ─▶ [WatchedResources] ◀─ follow… ─▶ Watch, Unwatch, ResolveName
//                                 └─▶ config_builder
//
// Invariants
//   W1  Each resource has one watch, however many paths lead to it (A37-10).
//   W2  A resource that is no longer needed is unwatched and dropped in the same step. Its late
//       events are ignored.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "absl/status/statusor.h"

#include "messages/xds_events.hpp"
#include "xds/depend/cluster_graph.hpp"
#include "xds/depend/name_resolution.hpp"

namespace signalbox::xds {

template <typename T>
struct Watched {
  /// The last value or error; unset: the resource has not answered yet.
  std::optional<absl::StatusOr<std::shared_ptr<const T>>> value;
  absl::Status ambient;    ///< An error beside a value that stays valid.
  bool inherited = false;  ///< The value is from a former client; the present client has sent none.
};

/// Something that has not answered yet: a resource, or a name that DNS is to resolve.
using Awaited = std::variant<ResourceKey, DnsName>;

/// The greatest possible effect of an event: nothing changed; values changed; values and the set of
/// reachable resources changed.
enum class Changed : std::uint8_t { kNothing, kValues, kGraph };

class WatchedResources {
 public:
  WatchedResources(std::string listener_name, const ResolutionOptions& options, std::uint64_t seed);

  // --- events ---

  /// The functions record() store a value or an error, and return what may have changed by it. They
  /// ignore events of resources and names that are not watched. At the first answer of a leaf
  /// cluster, the function for ResourceChanged itself watches the cluster's endpoints, and returns
  /// kValues. The set of reachable clusters does not change then, so it need not be explored for
  /// each of the many first answers at a start.
  Changed record(const ResourceChanged& event, DependencyEffects& effects);
  Changed record(const AmbientErrorChanged& event);
  Changed record(const NameResolved& event, Instant now, DependencyEffects& effects);
  void client_replaced();
  void resolve_again(Instant now, DependencyEffects& effects);
  void timer_fired(const TimerId& timer, DependencyEffects& effects);

  // --- what to watch ---

  void watch_listener(DependencyEffects& effects);
  /// Watches the RDS resource that the listener names, and unwatches any other RDS resource.
  void follow_listener(DependencyEffects& effects);
  /// Watches the clusters that can be reached from `roots`, and their endpoints. Unwatches other
  /// clusters and endpoints.
  void follow_clusters(const std::set<ClusterName>& roots, DependencyEffects& effects);

  // --- what is known ---

  const std::string& listener_name() const { return listener_name_; }

  const Watched<Listener>& listener() const { return listener_; }

  /// The name of the watched RDS resource. Empty: no RDS resource is named, because the listener
  /// has inline routes, is for servers, or has no value.
  const std::string& route_name() const { return route_name_; }

  const Watched<RouteConfig>& route_config() const { return route_config_; }

  /// Precondition of the next three functions: the resource is watched.
  const Watched<Cluster>& cluster(const ClusterName& name) const { return clusters_.at(name); }

  const Watched<Endpoints>& endpoints(const std::string& name) const { return endpoints_.at(name); }

  const NameResolution& name(const DnsName& name) const { return names_.at(name); }

  /// A ClusterLookup for cluster_graph: nullptr if there is no answer yet.
  const absl::StatusOr<ClusterPtr>* find_cluster(const ClusterName& name) const;

  /// A watched resource or DNS name without an answer; nullopt: all have answered.
  std::optional<Awaited> awaited() const;

  /// Whether all watched clusters, EDS resources and DNS names have answered.
  bool all_answered() const;

 private:
  template <typename Visitor>
  bool visit_watched(const ResourceKey& key, Visitor visit);
  void watch_clusters(const std::set<ClusterName>& reached, DependencyEffects& effects);
  void watch_leaves(DependencyEffects& effects);
  void watch_endpoints(const std::string& name, DependencyEffects& effects);
  void watch_name(const DnsName& name, DependencyEffects& effects);
  Changed replace_cluster(const ResourceChanged& event, DependencyEffects& effects);

  std::string listener_name_;
  ResolutionOptions resolution_;
  std::uint64_t seed_;
  // The number of NameResolutions ever made; the newest one's serial number.
  std::uint64_t resolutions_ = 0;

  Watched<Listener> listener_;
  std::string route_name_;
  Watched<RouteConfig> route_config_;
  std::map<ClusterName, Watched<Cluster>> clusters_;
  std::map<std::string, Watched<Endpoints>> endpoints_;
  std::map<DnsName, NameResolution> names_;
};

}  // namespace signalbox::xds
