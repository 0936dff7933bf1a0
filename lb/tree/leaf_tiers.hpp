// SPDX-License-Identifier: Apache-2.0
//
// leaf_tiers — the priorities of a leaf cluster below an aggregate in tiered mode (ENV-4).
//
//   override_host ─▶ [leaf_tiers] ─┬▶ child0: priority 0, those that are healthy by EDS
//     ▲ CdsConfig::tiers           ├▶ child0-degraded: the same priority, those that are DEGRADED
//   tiered ◀─ HostReport           └▶ child1-all: priority 1 in panic: all of its endpoints
//
// It stands where priority stands else, and chooses nothing: the tier that tiered drew for a call
// takes it, and says whether the call waits or fails. A session's host outranks the tier:
// override_host stands above.
//
// Invariants
//   L1  A child runs for each tier of LeafTiersConfig::tiers that has endpoints; the endpoints are
//       connected (ENV-25). A child that leaves the set runs on for kPriorityRetention.
//   L2  A priority keeps its children by its name (PriorityNames), so that a host that stays keeps
//       its connection.
//   L3  The report has a row for each priority: of a tier that runs what its child says, of others
//       what EDS says: an endpoint that was not tried counts as healthy (ENV-25).
//   L4  While a configuration is half applied the report and the tiers that picks find stay what
//       they were, for one failover window at most; the pickers of tiers are the newest always.
//   L5  In panic children are given all that are not DRAINING, as UNHEALTHY: their health does not
//       matter there (EndpointSet I3).
//
// It is READY, CONNECTING or IDLE as the best child of the set is, and in TRANSIENT_FAILURE when
// all of them are, or the cluster has no endpoints. With no tier in the set it is CONNECTING.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf_tiers(PolicyOptions options = {});

}  // namespace signalbox::lb
