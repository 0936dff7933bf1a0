// SPDX-License-Identifier: Apache-2.0
//
// override_host — keeps a session on its backend (gRFC A55), across priorities (gRFC A75).
//
//   cluster_impl ─▶ [override_host] ─▶ priority ─▶ …
//
// Stands above the cluster's priorities, so that it sees the endpoints of all of them (A75-2). Who
// takes a call of a session is its picker's decision (override_host_picker); here is what that one
// knows, and what its asks lead to. Whose connection is kept for sessions, and how long, is the
// subchannel map's (KeepSessions): only it knows who else holds an address.
//
// Invariants
//   I1  The child sees no DRAINING endpoint among those that get calls (A55-29): they are counted
//       with the unhealthy ones.
//   I2  A locality that did not change keeps its pointer on the way down.
//   I3  Where no call can be of a session, it costs nothing: nothing is ordered of the map, and the
//       child's picker is published as it is (A55-25).
//   I4  An event of one endpoint costs O(1); a picker, one for each burst of them, O(endpoints).
//   I5  Whatever is told of an address, a picker follows: asks are one-shot (A75-39).

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_override_host(PolicyContext context);

}  // namespace signalbox::lb
