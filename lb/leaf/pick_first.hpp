// SPDX-License-Identifier: Apache-2.0
//
// pick_first — one connection, to the first address that answers (gRFC A61, A62, A113).
//
//   parent ─▶ [pick_first] ─▶ subchannel map, one hold per address that is tried or selected
//
// The policy connects as soon as it is configured. When its connection is lost the policy goes
// IDLE; the next pick, or IdleExitRequested, makes it connect again. PickFirst
// (pick_first_core.hpp) has the decisions, with their diagram and invariants; this file joins them
// with configuration, pickers and parents.
//
// address_order.hpp orders the addresses: endpoints as configured (shuffled by the seed, and by
// weight, if so configured), each with its addresses in order, families interleaved.
//
// Health does not change the choice: an ejected endpoint stays in use, because pick_first has no
// other connection (A61, A17). Its calls are counted all the same. Health does change the
// HostReport: all endpoints count as fit, except the endpoint in use if a judge finds it unfit.
// With PolicyOptions::unreachable_is_unhealthy, no endpoint is fit once every address has failed.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const PickFirstConfig& config, PolicyContext context);

}  // namespace signalbox::lb
