// SPDX-License-Identifier: Apache-2.0
//
// XdsConfig — the whole resolved world of one target, complete or not there at all (gRFC A74).
//
//   dependency manager ─▶ [XdsConfig] ─▶ channel: config selector and policy tree
//
// Invariants
//   X1  Every cluster that the virtual host names, every subscribed one and every leaf of an
//       aggregate has an entry; one that cannot be used holds its error, and spoils no other.
//   X2  An aggregate's leaves are flattened, depth-first, without duplicates (A37-7, A37-8).
//   X3  What did not change since the last XdsConfig is the same pointer.
//
// Beside it travel the ResolutionNotes: what failed calls say of a configuration that is old.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "messages/cluster.hpp"
#include "messages/endpoints.hpp"
#include "messages/listener.hpp"
#include "messages/route_config.hpp"

namespace signalbox {

/// A leaf: where its calls can go.
struct LeafEndpoints {
  /// Null: none known (yet), and `resolution_note` says why.
  EndpointsPtr endpoints;
  std::string resolution_note;
};

/// An aggregate: the leaves that it stands for.
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
  std::string authority = {};  ///< The target's, which never changes: "orders:80".
};

using XdsConfigPtr = std::shared_ptr<const XdsConfig>;

/// What is wrong beside a configuration that stays valid: for the texts of failed calls, and for
/// nothing else (gRFC A88). No part of XdsConfig, so that it changes without one.
struct ResolutionNotes {
  std::string node;    ///< "node ID: n"; empty: the node has none.
  std::string target;  ///< Of listener and routes; empty: nothing.
  /// Of the clusters that calls can be routed to, where there is something. An aggregate's has
  /// what is wrong with its leaves.
  std::map<ClusterName, std::string> clusters;

  friend bool operator==(const ResolutionNotes&, const ResolutionNotes&) = default;
};

using ResolutionNotesPtr = std::shared_ptr<const ResolutionNotes>;

}  // namespace signalbox
