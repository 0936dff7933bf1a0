// SPDX-License-Identifier: Apache-2.0
//
// leaf_tiers — the priorities of a leaf cluster below an aggregate in tiered mode (ENV-4).
//
//   override_host ─▶ [leaf_tiers] ─┬▶ child0: priority 0, endpoints that are healthy in EDS
//     ▲ CdsConfig::tiers           ├▶ child0-degraded: priority 0, endpoints that are DEGRADED
//   tiered ◀─ HostReport           └▶ child1-all: priority 1 in panic, all endpoints
//
// In tiered mode leaf_tiers replaces the policy priority. It chooses nothing: the policy tiered has
// already drawn the call's tier (the healthy, the degraded or, in panic, all endpoints of one
// priority). The child for that tier picks an endpoint, or makes the call wait or fail. If the tier
// has no endpoints any more, leaf_tiers_picker.hpp says which tier takes its place.
// override_host is above leaf_tiers, so a session's host counts more than the call's tier.
//
// Invariants
//   L1  Each tier of LeafTiersConfig::tiers that has endpoints has a running child, which connects
//       as its policy does (ENV-25): ring_hash, for example, only when a call comes. When
//       LeafTiersConfig::tiers no longer has the tier, its child runs on for kPriorityRetention (15
//       minutes). When the tier has no endpoints any more, its child is stopped.
//   L2  Children are named after their priority (PriorityNames), not after its number. So the hosts
//       of a priority that moves keep their connections.
//   L3  The HostReport has a row for each priority. The child of a running tier, kAll excepted,
//       supplies the number of the tier's fit endpoints. If the child counts only a subset of the
//       tier's endpoints (random_subsetting), the fit share of the subset is taken for the share of
//       the tier. EDS supplies the number of any other tier, so an endpoint without an attempt to
//       connect counts as fit (ENV-25).
//   L4  Until all children have answered a configuration, or one failover_timeout is over, the
//       HostReport and the list of tiers stay as they were. The picker of a tier is always the
//       newest.
//   L5  The child of a tier in panic gets all endpoints but DRAINING ones. They are marked
//       UNHEALTHY, so that EndpointSet uses them whatever their health (its I3).
//   L6  With fail_traffic_on_panic (Envoy), calls to a tier in panic fail, and the tier has no
//       child.
//
// The policy's state is the best state of the children of LeafTiersConfig::tiers: READY, else
// CONNECTING, else IDLE, else TRANSIENT_FAILURE. A cluster that has only DRAINING endpoints, or
// none, is in TRANSIENT_FAILURE. If it has others, but none of these tiers has a child, the state
// is CONNECTING. Before the first configuration has taken effect (L4) it is CONNECTING, too.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf_tiers(PolicyOptions options = {});

}  // namespace signalbox::lb
