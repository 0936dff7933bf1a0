// SPDX-License-Identifier: Apache-2.0
//
// policies — the policies that a cluster may have, a row each: its configuration, its promises.
//
//   chance ─▶ policy_table() ─▶ ClusterModel::policy ─┬▶ write: for resources
//                                                     └▶ connects, chooses: for quiescence and
//                                                        promises
//
// A new policy is one row in policies.cpp.

#pragma once

#include <cstdint>
#include <span>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"

namespace signalbox::sim {

/// Which hosts of the priority in use have a connection at rest.
enum class Connects : std::uint8_t {
  kAll,
  kOne,
  kOnePerLocality,
  kAsked  ///< Those that calls have asked for, at most one each.
};

/// Where calls go at rest.
enum class Chooses : std::uint8_t {
  kEverybody,       ///< Each host in use has its share.
  kOne,             ///< All to the same.
  kOnePerLocality,  ///< All of a locality to the same.
  kByHash           ///< Equal hashes to the same, whatever the call's chance.
};

struct PolicyRow {
  const char* name;
  Connects connects;
  Chooses chooses;
  /// Its xDS configuration; null: CDS says nothing of a policy.
  void (*write)(envoy::config::cluster::v3::LoadBalancingPolicy& policy);
};

std::span<const PolicyRow> policy_table();

}  // namespace signalbox::sim
