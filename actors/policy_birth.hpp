// SPDX-License-Identifier: Apache-2.0
//
// PolicyBirth — what a policy actor starts with, and its spawn function. It has a header of its
// own, because ChildPolicies spawns policy actors, and each policy actor has ChildPolicies.
//
//   parent: PolicyBirth ─▶ spawn_policy() ─▶ policy actor

#pragma once

#include <cstdint>

#include "actors/environment.hpp"
#include "actors/protocol/policy.hpp"
#include "actors/protocol/subchannel_map.hpp"
#include "messages/ids.hpp"
#include "messages/lb_config.hpp"
#include "messages/subchannel_events.hpp"

namespace signalbox::actors {

/// The start values of a node of the policy tree.
struct PolicyBirth {
  LbConfigPtr config;  ///< The first configuration. Its type determines the kind of policy.
  ChildName name;      ///< The child's name at its parent.
  PolicyPath path;
  ClusterName cluster;       ///< See lb::PolicyContext::cluster.
  std::uint64_t launch = 1;  ///< The number of the launch at the parent; it seeds the policy.
  protocol::PolicyParent parent;
  /// The subchannel map of the leaf cluster; null for the policy that owns the map, and for the
  /// policies above it.
  protocol::SubchannelMapActor subchannels;
  /// The incarnation of the parent as a holder. Empty: the parent owns the map, or is above it.
  Incarnation parent_incarnation;
};

/// Starts the policy actor of one node of the policy tree. The actor owns the actors of its child
/// policies. At the root of a leaf cluster it also owns the cluster's subchannel map.
protocol::PolicyActor spawn_policy(caf::actor_system& system,
                                   EnvironmentPtr environment,
                                   PolicyBirth birth);

}  // namespace signalbox::actors
