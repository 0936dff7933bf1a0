// SPDX-License-Identifier: Apache-2.0
//
// ring_hash — calls with the same hash go to the same endpoint (gRFC A42, A61, A76).
//
//   parent ─▶ [ring_hash: HashRing] ─▶ subchannel map, one hold per address that is tried
//
//   hash of a call: request_hash_header, where configured ─▶ else its route's ─▶ else by chance
//
// All endpoints of the slice are on one ring, each with its share by weight (A113), placed by its
// hash key, or its first address. A pick walks from its hash: READY takes it; IDLE is connected,
// and it waits; for CONNECTING it waits; past TRANSIENT_FAILURE it goes on. A hash by chance means
// no endpoint: such a pick goes on to the first that is READY, and connects no more than one on its
// way, none while another connects.
//
// Nothing is connected before a pick wants it, except: once an endpoint has failed and none is
// READY, one that is IDLE is connected whenever nobody else connects, so that the policy comes out
// of TRANSIENT_FAILURE though no pick reaches it.
//
// Invariants
//   I1  READY: any is. TRANSIENT_FAILURE: two or more are. CONNECTING: any is, or one of several
//       failed. IDLE: any is. Else TRANSIENT_FAILURE. The first rule that fits.              (A42)
//   I2  A change of state makes a picker of the same ring; a ring is built only for another list,
//       weight, key or size.
//   I3  An endpoint without a point on the ring, as there are where they are more than its points,
//       is reached by no pick: it counts neither for the state nor in texts, and nobody connects
//       it unasked.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const RingHashConfig& config, PolicyContext context);

}  // namespace signalbox::lb
