// SPDX-License-Identifier: Apache-2.0
//
// outlier_detection — ejects endpoints that fail more calls than others (gRFC A50).
//
//   cds ─▶ [outlier_detection] ─▶ cluster_impl ─▶ …
//               │  ▲ every interval: tally of calls (outlier_endpoints) ─▶ verdicts (outlier_rules)
//               │  └───────────────────────────────────────────── TrackEndpoints ◀─ per endpoint
//               ▼
//   subchannel map: SetEndpointHealth ─▶ all holders of the endpoint's addresses
//
// outlier_detection is above the cluster's priorities in the policy tree, so it judges the
// endpoints of all priorities together (A75-2, A75-3). An ejected endpoint keeps its connection,
// and is reported as unhealthy (A61). Policies that choose among endpoints leave it out, unless its
// priority is in panic (leaf_tiers). pick_first as the cluster's own policy continues to use it,
// because pick_first ignores health.
//
// To each complete pick of an endpoint that it judges, the policy's picker adds a tracker that
// counts the endpoint's calls.
// While neither success_rate nor failure_percentage is configured, no timer runs, no endpoint is
// ejected, and the child's picker is published unchanged.
//
// Invariants
//   D1  The timer is due one interval after the last sweep, or after counting began. A new
//       configuration does not restart the interval; a new length counts from the same beginning.
//       If that puts the timer into the past, it is due at once.
//   D2  The subchannel map always gets complete tables (trackers, unfit endpoints). The first
//       configuration always sends both tables, so they replace the tables that an earlier actor of
//       this policy sent before it died.
//   D3  Explanations show a change of the ejections from the child's next report on, and at the
//       latest from the next sweep on. The child reports soon if the change concerns its picker.
//       pick_first keeps its picker, so under priority nothing is published before the next sweep.
//
// An interval shorter than kShortestSweepInterval is raised to it, because sweeps without a pause
// would keep a thread busy for nothing.

#pragma once

#include <chrono>
#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

inline constexpr Duration kShortestSweepInterval = std::chrono::milliseconds(100);

std::unique_ptr<Policy> make_outlier_detection(PolicyContext context);

}  // namespace signalbox::lb
