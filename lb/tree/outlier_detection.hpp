// SPDX-License-Identifier: Apache-2.0
//
// outlier_detection — sets endpoints aside that answer badly (gRFC A50).
//
//   cds ─▶ [outlier_detection] ─▶ cluster_impl ─▶ …
//               │  ▲ every interval: tally of calls (outlier_endpoints) ─▶ verdicts (outlier_rules)
//               │  └───────────────────────────────────────────── TrackEndpoints ◀─ per endpoint
//               ▼
//   subchannel map: SetEndpointHealth ─▶ all holders of the endpoint's addresses
//
// It stands above the cluster's priorities, so it judges the endpoints of all of them together
// (A75-2, A75-3). An ejected endpoint keeps its connection and is reported as unhealthy (A61).
// Policies that choose among endpoints leave it out. pick_first as the cluster's own policy goes on
// using it.
//
// Its picker names, for each pick that completes, the tracker of the endpoint's calls. While
// neither algorithm is configured there is no timer, no endpoint is known or ejected, and the
// child's picker is published unchanged.
//
// Invariants
//   D1  The timer is due one interval after the last sweep, or after counting began, however often
//       the configuration changes; at once, if that instant has passed.
//   D2  Every order to the subchannel map has the complete table. The first configuration gives
//       these orders in any case, which ends the orders of an actor that died before this one.
//
// A shorter interval is raised to kShortestSweepInterval, because sweeping without a pause would
// keep a thread busy for nothing.

#pragma once

#include <chrono>
#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

inline constexpr Duration kShortestSweepInterval = std::chrono::milliseconds(100);

std::unique_ptr<Policy> make_outlier_detection(PolicyContext context);

}  // namespace signalbox::lb
