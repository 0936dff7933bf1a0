// SPDX-License-Identifier: Apache-2.0
//
// round_robin — every endpoint in turn, each through a pick_first of its own (gRFC A61).
//
//   parent ─▶ [round_robin] ─▶ subchannel map, one hold per address
//
// Takes the endpoints of all localities of all priorities of its slice, connects to every one at
// once, and again as soon as one goes IDLE. Of several addresses of an endpoint the first that is
// READY is used (Happy Eyeballs, pick_first_core.hpp). What it has in common with its like, and
// when it publishes, is Petiole's (petiole.hpp).
//
// Invariants
//   I1  READY while any endpoint is READY, else CONNECTING while any may become it,
//       else TRANSIENT_FAILURE.
//   I2  Each stripe of threads goes round by itself: on one thread the shares of the endpoints are
//       exactly even, and no pick writes a cache line that another stripe reads.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const RoundRobinConfig& config, PolicyContext context);

}  // namespace signalbox::lb
