// SPDX-License-Identifier: Apache-2.0
//
// ring_hash — calls with the same hash go to the same endpoint (gRFC A42, A61, A76).
//
//   parent ─▶ [ring_hash: HashRing] ─▶ subchannel map, at most one hold per address
//
//   hash of a call: of its request_hash_header, if one is configured, else its route's hash
//                   └▶ random, if that header is absent or empty, or the route gives no hash
//
// All endpoints of the policy are on one ring. An endpoint's number of points follows its weight
// (A113); their places follow from its hash key, or else from its first address. A pick walks the
// ring from the call's hash:
//   - A READY endpoint takes the call.
//   - An IDLE endpoint is connected, and the call waits. At a CONNECTING endpoint the call waits.
//   - An endpoint in TRANSIENT_FAILURE is passed over.
// A random hash binds the call to no endpoint. Such a pick walks on to the first READY endpoint, if
// there is one. On its way it connects at most one endpoint, and none while another endpoint is
// connecting.
//
// An endpoint is connected when a pick or IdleExitRequested needs it. Exception: while some
// endpoint has failed, and none is READY or CONNECTING, the policy connects an IDLE endpoint by
// itself. So it can leave TRANSIENT_FAILURE even if no pick comes.
//
// Invariants
//   I1  The first rule that fits sets the policy's state (A42). READY if any endpoint is READY.
//       TRANSIENT_FAILURE if two or more have failed. CONNECTING if any is CONNECTING, or if one of
//       several has failed. IDLE if any is IDLE. Else TRANSIENT_FAILURE.
//   I2  A change of state makes a picker with the same ring. A ring is built only when the list, a
//       field of an endpoint or locality, or the size has changed.
//   I3  Endpoints may have no point on the ring (hash_ring.hpp). No pick reaches such endpoints.
//       They count neither for the policy's state nor in the texts of failures, and the policy
//       never connects them.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const RingHashConfig& config, PolicyContext context);

}  // namespace signalbox::lb
