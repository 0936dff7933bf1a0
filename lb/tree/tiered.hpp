// SPDX-License-Identifier: Apache-2.0
//
// tiered — Envoy's aggregate cluster: calls are spread over the priorities of all leaves by health.
//
//   cds(aggregate) ─▶ [tiered] ─▶ cds, one per leaf ─▶ … ─▶ leaf_tiers ─▶ the leaf's own policy
//        loads ◀─ priority_loads ◀─ HostReport ◀─┘  ▲
//          └─▶ picker: draws leaf and tier          └─ CdsConfig::tiers: whom to connect
//
// Two tiers of choice (ENV-4): here a call gets its leaf and the priority of that leaf; which host
// of these it goes to is for the leaf's own policy, whichever it has (ENV-21). Whether it waits or
// fails there is that one's to say, too, as it is in Envoy: no call goes to another tier because
// the one that it drew has nobody to offer. All that stands in a leaf's tree acts as it does under
// priority: drops, limits, outlier detection, sessions.
//
// Invariants
//   T1  Loads are those of plan_tiers() for what the leaves said last; they change with the picker
//       and the picker with them, in one step.
//   T2  While a configuration is half applied the loads stay what they were, for one failover
//       window at most; the pickers of leaves are the newest always.
//   T3  A leaf hears of its tiers when these change, and of nothing that concerns others.
//   T4  A leaf that begins anew (CONNECTING, no report) counts as it did before; one that cannot be
//       had (TRANSIENT_FAILURE, no report) is skipped (ENV-6).
//   T5  A call of a session whose host can be used in any leaf goes to that leaf, whatever the
//       loads are, and to its host there (ENV-27); so do its retries (A55-37). All other calls are
//       drawn.
//
// State: CONNECTING until the leaves have answered the first configuration. Where no endpoint is
// healthy or degraded and there is no panic, TRANSIENT_FAILURE: calls fail UNAVAILABLE, but for
// those of sessions whose host may be used all the same (DRAINING). Else that of the leaves with a
// share: READY if any is, else CONNECTING, IDLE, or TRANSIENT_FAILURE if all of them are.
//
// Below which share of fit endpoints a priority panics is the aggregate's own word, else the
// runtime's (ENV-31); what its leaves say of that is not read.
//
// Envoy's plug-ins that a retry may choose priorities by (PriorityLoad) have no place here, nor do
// they work with Envoy's aggregate (ENV-20): each attempt of a call without a session is drawn
// anew.
//
// Source: Envoy's "Aggregate Cluster" (ENV-1 … 33).

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_tiered(PolicyOptions options = {});

}  // namespace signalbox::lb
