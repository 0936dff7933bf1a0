// SPDX-License-Identifier: Apache-2.0
//
// cds — looks one cluster up in the configuration, and builds the policies that serve it (gRFC A37,
// A75).
//
//   cluster_manager ─▶ [cds] ─┬ leaf:      ─▶ outlier_detection ─▶ … ─▶ priority ─▶ lb_policy
//   priority, tiered ─▶ [cds] ┤            └▶ the subchannel map that all below it share
//                             └ aggregate: ─▶ priority, or tiered, ─▶ cds, one for each leaf
//
// A cluster without a valid configuration is in TRANSIENT_FAILURE, and calls to it fail with
// UNAVAILABLE, whatever the error. Calls to a deleted cluster are dropped. In both cases other
// clusters are not affected (A75-11).
//
// Invariants
//   D1  The subchannel map is opened before a policy below can acquire a subchannel. It is closed
//       only when no policy with subchannels from it serves any more.
//   D2  When the policies below have applied the newest generation that the map was sent, cds tells
//       the map. The map then stops subchannels that it kept without a holder until then.
//   D3  A leaf that did not change gets no update, unless the policy that its aggregate sets for it
//       changes (CdsConfig::lb_policy), or sessions begin or end (may_have_sessions). A leaf under
//       tiered gets every update, because a policy below it may have died and restarted with older
//       tiers.
//   D4  Policies below see endpoints that are not HEALTHY, UNKNOWN or DRAINING only under tiered,
//       which counts such endpoints and may send them calls. leaf_tiers then replaces priority.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

/// `mode`: how calls are spread over the leaves of an aggregate that sets no mode itself.
std::unique_ptr<Policy> make_cds(AggregateMode mode = AggregateMode::kPriority);

}  // namespace signalbox::lb
