// SPDX-License-Identifier: Apache-2.0
//
// shares — the share of a leaf's calls that each host must have at rest, as the simulator computes
// it from the topology and the rules of policies.hpp.
//
//   ClusterModel, the client's zone ─▶ [shares] ─▶ host → part of the calls ─▶ promises
//
// The arithmetic is written anew here, with fractions: what is tested (lb/health/zone_split, the
// pickers) takes no part in it.

#pragma once

#include <map>
#include <optional>
#include <string>

#include "tests/sim/topology.hpp"

namespace signalbox::sim {

/// Each host's part of the calls; the parts sum to 1. nullopt: no exact shares are known. `zone`:
/// Topology::zone. Precondition: every host is up. If the policy has a bias, no call is in flight:
/// hosts of equal weights get calls by those in flight, whatever the bias.
std::optional<std::map<Address, double>> shares_of(const std::string& leaf,
                                                   const ClusterModel& model,
                                                   const std::string& zone);

/// As above, while one more call is in flight to `busy` than to any other host. Precondition: the
/// policy is least_request with a bias, two choices, and no choice of a locality.
std::map<Address, double> shares_with_busy(const std::string& leaf,
                                           const ClusterModel& model,
                                           const Address& busy);

/// The host's zone; empty: the leaf is a DNS name.
std::string zone_of(const ClusterModel& model, const Address& host);

}  // namespace signalbox::sim
