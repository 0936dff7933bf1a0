// SPDX-License-Identifier: Apache-2.0
//
// policies — a table of the policies that a cluster may have: the configuration of each, which
// hosts it connects to, and where it sends calls.
//
//   random draw ─▶ a row of policy_table() ─▶ ClusterModel::policy
//      PolicyRow::write ─▶ resources: the cluster's load_balancing_policy
//      PolicyRow::connects ─▶ quiescence checks the connections
//      PolicyRow::chooses ─▶ promises checks the hosts that picks choose
//      PolicyRow::shares, zones ─▶ shares: the share of calls that each host must have
//
// A new policy is one row in policies.cpp.

#pragma once

#include <cstdint>
#include <optional>
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

/// How calls are divided among the hosts of a locality, or among all hosts of a policy that does
/// not know localities.
enum class Shares : std::uint8_t {
  kUnchecked,  ///< Shares vary with slow start, calls in flight or hashes.
  kAlike,
  kByWeight,  ///< By the weights of EDS, while no call is in flight.
  kByLoad     ///< By the load that each host reports at rest: testing::true_load().
};

/// The rule of zone-aware routing (decision 0150).
struct ZoneRule {
  unsigned percent = 100;    ///< routing_enabled: the rule is for this part of the calls.
  std::uint64_t fewest = 6;  ///< min_cluster_size: with fewer hosts the rule does not hold.
};

struct PolicyRow {
  const char* name;
  Connects connects;
  Chooses chooses;
  /// The policy's xDS configuration; null: CDS has no load_balancing_policy.
  void (*write)(envoy::config::cluster::v3::LoadBalancingPolicy& policy);
  Shares shares = Shares::kUnchecked;
  bool by_locality = false;  ///< A locality is chosen first, by weight or by `zones`.
  /// Without a `write`, CDS has the rule in common_lb_config.
  std::optional<ZoneRule> zones = std::nullopt;
  std::optional<double> bias = std::nullopt;  ///< active_request_bias of least_request.
};

std::span<const PolicyRow> policy_table();

}  // namespace signalbox::sim
