// SPDX-License-Identifier: Apache-2.0
//
// policies — the policies that a cluster may have, one row each: configuration and promises.
//
//   chance ─▶ policy_table() ─▶ ClusterModel::policy ─┬▶ write: resources
//                                                     └▶ connects, chooses: quiescence, promises
//
// A new policy is one row in policies.cpp.

#pragma once

#include <cstdint>
#include <span>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"

namespace signalbox::sim {

/// The hosts of the priority in use that have a connection at rest.
enum class Connects : std::uint8_t {
  kAll,
  kOne,
  kOnePerLocality,
  kAsked  ///< Hosts that calls have asked for, at most one connection each.
};

/// Where calls go at rest.
enum class Chooses : std::uint8_t {
  kEverybody,       ///< Each host in use has a share.
  kOne,             ///< All calls to the same host.
  kOnePerLocality,  ///< All calls of a locality to the same host.
  kByHash           ///< Equal hashes to the same host, whatever the call's random draw.
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
