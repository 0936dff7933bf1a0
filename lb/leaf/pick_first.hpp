// SPDX-License-Identifier: Apache-2.0
//
// pick_first — one connection, to the first address that answers (gRFC A61, A62, A113).
//
//   parent ─▶ [pick_first] ─▶ subchannel map, one hold per address that is tried or selected
//
// Connects as soon as it is configured; once its connection is lost it goes IDLE, and the next
// pick (or IdleExitRequested) wakes it. The decisions, with their diagram and invariants, are
// PickFirst's (pick_first_core.hpp); here they meet configuration, pickers and parents.
//
// The order of the addresses is address_order.hpp's: endpoints as configured (shuffled by the seed,
// and by weight, where so configured), each with its addresses in order, families interleaved.
//
// Health is nobody's business here: an endpoint that was ejected is used on, as there is no other
// (A61, A17). Whether calls are counted is not affected. But it says how many are fit (HostReport):
// all but the one in use if a judge finds that unfit; none once every address has failed.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const PickFirstConfig& config, PolicyContext context);

}  // namespace signalbox::lb
