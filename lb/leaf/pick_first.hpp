// SPDX-License-Identifier: Apache-2.0
//
// pick_first — one connection, to the first address that answers (gRFC A61, A62, A113).
//
//   parent ─▶ [pick_first] ─▶ subchannel map, one hold per address that is tried or selected
//
// Connects as soon as it is configured. When its connection is lost it goes IDLE, and the next pick
// (or IdleExitRequested) wakes it. PickFirst (pick_first_core.hpp) has the decisions, with their
// diagram and invariants; this file joins them with configuration, pickers and parents.
//
// address_order.hpp orders the addresses: endpoints as configured (shuffled by the seed, and by
// weight, if so configured), each with its addresses in order, families interleaved.
//
// Health does not change the choice: an ejected endpoint stays in use, because there is no other
// (A61, A17). Its calls are counted all the same. The HostReport does heed health: all endpoints
// are fit, less the endpoint in use if a judge finds it unfit. If
// PolicyOptions::unreachable_is_unhealthy is set, none is fit once every address has failed.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const PickFirstConfig& config, PolicyContext context);

}  // namespace signalbox::lb
