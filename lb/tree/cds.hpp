// SPDX-License-Identifier: Apache-2.0
//
// cds — one cluster: looks it up in the configuration, and builds what serves it (gRFC A37, A75).
//
//   cluster_manager ─▶ [cds] ─┬ leaf:      ─▶ outlier_detection ─▶ … ─▶ priority ─▶ lb_policy
//   priority ─────────▶ [cds] ┤            └▶ the subchannel map that all below it share
//                             └ aggregate: ─▶ priority, or tiered, ─▶ cds, one for each leaf
//
// A cluster that cannot be had is in TRANSIENT_FAILURE, and calls to it fail with UNAVAILABLE,
// whatever went wrong; one that is gone drops them. Neither spoils another cluster (A75-11).
//
// Invariants
//   D1  The subchannel map is open before anything below can acquire, and is closed only when
//       nothing that served from it serves any more.
//   D2  What lingers in the map is dropped once the generation is applied below.
//   D3  A leaf that did not change hears nothing, unless sessions begin or end (may_have_sessions).
//       One under tiered hears all: what died below it may have gone back to older tiers.
//   D4  Endpoints that are not HEALTHY, UNKNOWN or DRAINING are known below only under tiered,
//       which counts them and may send them calls; then leaf_tiers replaces priority.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

/// `mode`: of an aggregate that does not say.
std::unique_ptr<Policy> make_cds(AggregateMode mode = AggregateMode::kPriority);

}  // namespace signalbox::lb
