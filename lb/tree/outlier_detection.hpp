// SPDX-License-Identifier: Apache-2.0
//
// outlier_detection — sets endpoints aside that answer badly (gRFC A50).
//
//   cds ─▶ [outlier_detection] ─▶ cluster_impl ─▶ …
//               │  ▲ every interval: tally of calls (outlier_endpoints) ─▶ verdicts (outlier_rules)
//               │  └───────────────────────────────────────────── TrackEndpoints ◀─ per endpoint
//               ▼
//   subchannel map: SetEndpointHealth ─▶ all who hold an address of the endpoint
//
// It stands above the cluster's priorities, so it judges the endpoints of all of them together
// (A75-2, A75-3). An ejected endpoint keeps its connection and is told to be unhealthy (A61): the
// policies that choose among endpoints leave it out, and pick_first as the cluster's own policy
// does not mind.
//
// Its picker names, for each pick that completes, who counts the endpoint's calls. While neither
// algorithm is configured there is no timer, no endpoint is known or ejected, and the child's own
// picker is passed on.
//
// Invariants
//   D1  The timer is due one interval after the last sweep, or after counting began, however often
//       the configuration changes; at once, if that has passed.
//   D2  What is told to the subchannel map is the whole of it, and the first configuration tells
//       it in any case: what a predecessor of this actor said ends there.
//
// An interval below kShortestSweepInterval is taken as that: sweeping without a pause would keep
// a thread busy for nothing.

#pragma once

#include <chrono>
#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

inline constexpr Duration kShortestSweepInterval = std::chrono::milliseconds(100);

std::unique_ptr<Policy> make_outlier_detection(PolicyContext context);

}  // namespace signalbox::lb
