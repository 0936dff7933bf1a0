// SPDX-License-Identifier: Apache-2.0
//
// maglev — calls with the same hash go to the same endpoint, by Envoy's Maglev table.
//
//   parent ─▶ [maglev: MaglevTable] ─▶ subchannel map, at most one hold per address
//
//   hash of a call: by its route's hash policies (A42); random, if they give none
//
// All endpoints of the policy are in one table; an endpoint's number of slots follows its weight
// (A113). The policy connects its endpoints and reports its state as round_robin does
// (petiole.hpp). A pick begins at the slot of the call's hash:
//   - A READY endpoint takes the call.
//   - At an endpoint that is connecting the call waits. With a random hash the pick goes on.
//   - An endpoint in TRANSIENT_FAILURE is passed over: the pick goes on at the next slot.
// If 256 slots (or all of a smaller table) lead to no endpoint, the hash chooses among the READY
// endpoints. So the time of a pick is bounded.
//
// The table includes endpoints that are down. So a lost connection moves only the calls of that
// endpoint, and they return when the endpoint does. Envoy's table has only the healthy endpoints;
// while all endpoints are healthy, both tables are the same.
//
// Invariants
//   I1  A change of state makes a picker with the same table. A table is built only when the list,
//       a field of an endpoint or locality, or the size has changed.
//   I2  Endpoints may have no slot, if there are more endpoints than slots. No pick reaches such
//       endpoints. They count neither for the policy's state nor in the texts of failures.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const MaglevConfig& config, PolicyContext context);

}  // namespace signalbox::lb
