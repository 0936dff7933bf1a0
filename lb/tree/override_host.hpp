// SPDX-License-Identifier: Apache-2.0
//
// override_host — keeps a session on its backend (gRFC A55), across priorities (gRFC A75).
//
//   cluster_impl ─▶ [override_host] ─▶ priority ─▶ …
//
// override_host is above the cluster's priorities in the policy tree, so it sees the endpoints of
// all priorities (A75-2). Its picker (override_host_picker) decides which host takes a session's
// call. The policy gives the picker the hosts and their states, and carries out its asks ("connect
// this host"). The subchannel map decides which connections are kept for sessions, and for how long
// (KeepSessions), because only the map knows all policies that hold an address.
//
// Invariants
//   I1  DRAINING endpoints are not among the endpoints to which the child may send calls (A55-29).
//       They are passed on among the unhealthy endpoints.
//   I2  A locality that did not change keeps its pointer, so the child sees no change.
//   I3  When no call can belong to a session, this policy publishes the child's picker unchanged
//       (A55-25). It then sends the subchannel map nothing but one KeepSessions without hosts, if
//       there were sessions before.
//   I4  An event of one endpoint costs O(1). New states of hosts cost O(endpoints), once per burst
//       of events.
//   I5  Every event of the address of a host that sessions may use is followed by a new picker,
//       because a picker sends its ask for an address only once (A75-39).

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_override_host(PolicyContext context);

}  // namespace signalbox::lb
