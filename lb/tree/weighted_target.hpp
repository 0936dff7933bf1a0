// SPDX-License-Identifier: Apache-2.0
//
// weighted_target — shares calls among its children by weight (gRFC A28).
//
//   wrr_locality ─▶ [weighted_target] ─▶ one child policy for each locality
//
// Calls go only to READY children. When no child is READY, calls wait while a child is CONNECTING.
// When none is CONNECTING either, calls go to the IDLE children, which then connect. When all
// children are in TRANSIENT_FAILURE, a call is drawn to one of them. It fails with that child's
// reason, or waits if that child is connecting again. A child of weight 0 gets no calls; calls fail
// if only such children could take them.
//
// Invariants
//   W1  A child that reports IDLE is told to connect (ExitIdleChild), because it may get no calls
//       that would make it connect.
//   W2  A configuration, or a change of the aggregated state, is published at once. Other reports
//       of children wait for the end of a burst of events (RebuildSoon), or for an earlier
//       publication.
//   W3  The policy's HostReport is the sum of its children's. A child without a HostReport counts
//       as hosts_of() says (child_set.hpp).
//   W4  With zone_aware, READY children are drawn as health/zone_split says, from the fit endpoints
//       that their HostReports count. Another count makes a new picker.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_weighted_target();

}  // namespace signalbox::lb
