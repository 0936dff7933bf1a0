// SPDX-License-Identifier: Apache-2.0
//
// WatchedResources — all that one target watches, and what is known of it.
//
//   events ─▶ record… ─▶ [WatchedResources] ◀─ follow… ─▶ Watch, Unwatch, ResolveName
//                                 └─▶ config_builder
//
// Invariants
//   W1  One watch for each resource, however many ways lead to it (A37-10).
//   W2  What is followed no longer is forgotten in the same step; what arrives late is dropped.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"

#include "messages/xds_events.hpp"
#include "xds/depend/cluster_graph.hpp"
#include "xds/depend/name_resolution.hpp"

namespace signalbox::xds {

template <typename T>
struct Watched {
  std::optional<absl::StatusOr<std::shared_ptr<const T>>> value;  ///< Unset: not answered yet.
  absl::Status ambient;    ///< Something is wrong, but the value stays valid.
  bool inherited = false;  ///< The value is a former client's, and the present one has none.
};

/// What an event can have changed: nothing that is watched, what is known, or also what is
/// reached.
enum class Changed : std::uint8_t { kNothing, kValues, kGraph };

class WatchedResources {
 public:
  WatchedResources(std::string listener_name, const ResolutionOptions& options, std::uint64_t seed);

  // --- events ---

  /// Watches the endpoints of a leaf that answers for the first time: that alone does not change
  /// what is reached, and a start has many of them.
  Changed record(const ResourceChanged& event, DependencyEffects& effects);
  Changed record(const AmbientErrorChanged& event);
  Changed record(const NameResolved& event, Instant now, DependencyEffects& effects);
  void client_replaced();
  void resolve_again(Instant now, DependencyEffects& effects);
  void timer_fired(const TimerId& timer, DependencyEffects& effects);

  // --- what to watch ---

  void watch_listener(DependencyEffects& effects);
  /// Watches the RDS resource that the listener names, and no other.
  void follow_listener(DependencyEffects& effects);
  /// Watches all that can be reached from these clusters, and nothing else below the routes.
  void follow_clusters(const std::set<ClusterName>& roots, DependencyEffects& effects);

  // --- what is known ---

  const std::string& listener_name() const { return listener_name_; }

  const Watched<Listener>& listener() const { return listener_; }

  /// Empty: the listener holds its routes itself, or is not there.
  const std::string& route_name() const { return route_name_; }

  const Watched<RouteConfig>& route_config() const { return route_config_; }

  /// Precondition for the next three: the resource is watched.
  const Watched<Cluster>& cluster(const ClusterName& name) const { return clusters_.at(name); }

  const Watched<Endpoints>& endpoints(const std::string& name) const { return endpoints_.at(name); }

  const NameResolution& name(const DnsName& name) const { return names_.at(name); }

  /// For cluster_graph: nullptr where there is no answer.
  const absl::StatusOr<ClusterPtr>* find_cluster(const ClusterName& name) const;

  /// Nothing is missing of what is watched.
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
  std::uint64_t resolutions_ = 0;  // Ever made: their serial numbers.

  Watched<Listener> listener_;
  std::string route_name_;
  Watched<RouteConfig> route_config_;
  std::map<ClusterName, Watched<Cluster>> clusters_;
  std::map<std::string, Watched<Endpoints>> endpoints_;
  std::map<DnsName, NameResolution> names_;
};

}  // namespace signalbox::xds
