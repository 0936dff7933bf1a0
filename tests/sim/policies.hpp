// SPDX-License-Identifier: Apache-2.0
//
// policies — a table of the policies that a cluster may have: the configuration of each, which
// hosts it connects to, and where it sends calls.
//
//   random draw ─▶ a row of policy_table() ─▶ ClusterModel::policy
//      PolicyRow::write ─▶ resources: the cluster's load_balancing_policy
//      PolicyRow::connects ─▶ quiescence checks the connections
//      PolicyRow::chooses ─▶ promises checks the hosts that picks choose
//
// A new policy is one row in policies.cpp.

#pragma once

#include <cstdint>
#include <span>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"

namespace signalbox::sim {

/// Which hosts of the priority in use have a connection when the world is at rest.
enum class Connects : std::uint8_t {
  kAll,
  kOne,
  kOnePerLocality,
  kAsked  ///< Only hosts to which a pick wanted to send a call; at most one connection each.
};

/// Which hosts get calls when the world is at rest.
enum class Chooses : std::uint8_t {
  kEverybody,       ///< Calls are spread over all hosts in use.
  kOne,             ///< All calls go to one host.
  kOnePerLocality,  ///< All calls of a locality go to one host.
  kByHash           ///< Calls with equal hashes go to one host, whatever their seeds.
};

struct PolicyRow {
  const char* name;
  Connects connects;
  Chooses chooses;
  /// The policy's xDS configuration; null: CDS has no load_balancing_policy.
  void (*write)(envoy::config::cluster::v3::LoadBalancingPolicy& policy);
};

std::span<const PolicyRow> policy_table();

}  // namespace signalbox::sim
