// SPDX-License-Identifier: Apache-2.0
//
// round_robin — every endpoint in turn, each through a pick_first of its own (gRFC A61).
//
//   parent ─▶ [round_robin] ─▶ subchannel map, one hold per address
//
// Takes the endpoints of all localities of all priorities of its slice, connects to every one at
// once, and again as soon as one goes IDLE. Of several addresses of an endpoint the first that is
// READY is used (Happy Eyeballs, pick_first_core.hpp).
//
// Invariants
//   I1  READY while any endpoint is READY, else CONNECTING while any may become it,
//       else TRANSIENT_FAILURE.
//   I2  An endpoint is its set of addresses: one that stays in the list keeps its connection.
//   I3  One event costs O(1). What costs O(n), a picker, is built at state edges and otherwise once
//       per burst (RebuildSoon); re-resolution is asked for once per burst, too.
//   I4  Each stripe of threads goes round by itself: on one thread the shares of the endpoints are
//       exactly even, and no pick writes a cache line that another stripe reads.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_round_robin(const RoundRobinConfig& config, PolicyContext context);

}  // namespace signalbox::lb
