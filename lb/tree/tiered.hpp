// SPDX-License-Identifier: Apache-2.0
//
// tiered — Envoy's aggregate cluster: calls are spread over the priorities of all leaves by health.
//
//   cds(aggregate) ─▶ [tiered] ─▶ cds, one per leaf ─▶ … ─▶ leaf_tiers ─▶ the leaf's own policy
//        loads ◀─ priority_loads ◀─ HostReport ◀─┘  ▲
//          └─▶ picker: draws leaf and tier          └─ CdsConfig::tiers: what to connect
//
// A call's endpoint is found in two steps (ENV-4). First tiered draws a leaf and a tier of that
// leaf: the healthy, the degraded or, in panic, all endpoints of one priority. Then the leaf's own
// policy chooses the endpoint (ENV-21), or makes the call wait or fail, as in Envoy. If the
// endpoints of the drawn tier cannot take the call, the call goes to no other tier, unless the leaf
// has no endpoints left in that tier (leaf_tiers_picker.hpp). Drops, limits and outlier detection
// of a leaf work as they do under the policy priority, the other mode of aggregates.
//
// Invariants
//   T1  plan_tiers() computes the loads from the leaves' newest reports. Loads and picker change
//       together, in one step.
//   T2  Until all leaves have answered a configuration, or one failover_timeout is over, the loads
//       stay as they were. The pickers of leaves are always the newest.
//   T3  A leaf gets an update when its tiers change, and none when only other leaves' tiers change.
//   T4  A leaf that restarts (CONNECTING, no report yet) counts with its last report. A leaf
//       without a valid configuration (TRANSIENT_FAILURE, no report) is skipped (ENV-6).
//   T5  When any leaf can use the host of a call's session, the call goes to that leaf and host,
//       whatever the loads are (ENV-27). So do its retries (A55-37). When no leaf can use the host,
//       a call of a strict session fails. All other calls are drawn.
//
// State: CONNECTING until the leaves have answered the first configuration, or one failover_timeout
// is over. TRANSIENT_FAILURE when no endpoint is healthy or degraded and there is no panic: calls
// fail UNAVAILABLE, except calls of sessions with a usable host, such as a DRAINING one. Else the
// leaves that have a share of the calls decide: READY if any leaf is READY, else CONNECTING if any
// is, else IDLE if any is, else TRANSIENT_FAILURE.
//
// The panic threshold is the aggregate's own, or else the runtime's (ENV-31). The leaves'
// thresholds are not read.
//
// Envoy's plug-ins that choose priorities for retries (PriorityLoad) are not supported; they do not
// work with Envoy's aggregate either (ENV-20). Each attempt of a call without a session is drawn
// anew.
//
// Source: Envoy's "Aggregate Cluster" (ENV-1 … 33).

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_tiered(PolicyOptions options = {});

}  // namespace signalbox::lb
