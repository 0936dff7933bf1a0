// SPDX-License-Identifier: Apache-2.0
//
// XdsConfig — the complete resolved configuration of one target; it is never partial (gRFC A74).
//
//   dependency manager ─▶ [XdsConfig] ─▶ channel: config selector and policy tree
//
// Invariants
//   X1  Every cluster that the virtual host can send calls to (named_clusters), and every cluster
//       that calls still refer to, has an entry. If such a cluster is an aggregate, each of its
//       leaves has an entry, too. The entry of an unusable cluster holds its error. The error can
//       make only the aggregates above the cluster unusable (MissingLeaf of xds/depend), and no
//       other cluster.
//   X2  An aggregate's leaves are flattened, depth-first, without duplicates.
//   X3  A part that did not change since the last XdsConfig is the same pointer.
//
// ResolutionNotes are sent with the configuration. They hold the texts that are added to the errors
// of failed calls: the node's ID, and the faults that may make the configuration outdated.

#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "messages/cluster.hpp"
#include "messages/endpoints.hpp"
#include "messages/listener.hpp"
#include "messages/route_config.hpp"

namespace signalbox {

/// The endpoints of a leaf cluster.
struct LeafEndpoints {
  /// Null: there are none, because the EDS resource or the DNS look-up failed.
  EndpointsPtr endpoints;
  /// Why `endpoints` is null, or why none of its localities counts, for the errors of calls. Empty:
  /// neither is so.
  std::string resolution_note;
};

/// The leaves of an aggregate, flattened (X2).
struct AggregateLeaves {
  std::vector<ClusterName> leaves;
};

struct ClusterConfig {
  std::shared_ptr<const Cluster> cluster;
  std::variant<LeafEndpoints, AggregateLeaves> children;
};

using ClusterConfigPtr = std::shared_ptr<const ClusterConfig>;

struct XdsConfig {
  std::shared_ptr<const Listener> listener;
  std::shared_ptr<const RouteConfig> route_config;
  /// The virtual host chosen for the target: a member of *route_config.
  const VirtualHost* virtual_host = nullptr;
  std::map<ClusterName, absl::StatusOr<ClusterConfigPtr>> clusters;
  std::string authority = {};  ///< The target's authority, "orders:80"; it never changes.
};

using XdsConfigPtr = std::shared_ptr<const XdsConfig>;

/// By ResourceType: the version of the resource of this type that changed last; empty: there is no
/// such resource.
using ResourceVersions = std::array<std::string, 4>;

/// Where a configuration comes from, for people and metrics. It is not in XdsConfig, because a new
/// version may leave the configuration the same.
struct ConfigOrigin {
  ResourceVersions versions;
  /// When the last response came that changed the configuration. nullopt: no response did, but for
  /// example DNS, a timer, or the set of clusters that calls still refer to.
  std::optional<Instant> response_at;
};

/// The node's ID, and errors that leave the configuration valid (gRFC A88). They appear only in the
/// error texts of failed calls. They are not in XdsConfig, so that a note can change while the
/// configuration stays the same.
struct ResolutionNotes {
  std::string node;    ///< "node ID: n"; empty: the node has none.
  std::string target;  ///< The fault of listener and routes; empty: none.
  /// The faults of clusters that calls can be routed to. An aggregate's entry also has faults of
  /// its leaves.
  std::map<ClusterName, std::string> clusters;

  friend bool operator==(const ResolutionNotes&, const ResolutionNotes&) = default;
};

using ResolutionNotesPtr = std::shared_ptr<const ResolutionNotes>;

}  // namespace signalbox
