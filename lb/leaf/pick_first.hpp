// SPDX-License-Identifier: Apache-2.0
//
// pick_first — one connection, to the first address that answers (gRFC A61, A62, A113).
//
//   parent ─▶ [pick_first] ─▶ subchannel map, a hold on each address until one is selected
//
// The policy connects as soon as it is configured. When its connection is lost it becomes IDLE, and
// connects again at the next pick or IdleExitRequested. Exception: if the loss counts as a failed
// attempt (decision 152), it goes on connecting. The class PickFirst (pick_first_core.hpp)
// has the decisions, with their diagram and invariants. This policy connects that class with
// configurations, pickers and parents.
//
// address_order.hpp orders the addresses. Endpoints are in the order of the list, or, with
// shuffle_address_list, shuffled by the seed: by weight, or evenly without
// PolicyOptions::weighted_shuffling. Each endpoint's addresses stay in order. Then IPv4 and IPv6
// are interleaved.
//
// Health does not change the choice: an ejected endpoint stays in use, because pick_first has no
// other connection (A61, A17). Outlier detection counts its calls nevertheless. Health does change
// the HostReport. All endpoints but DRAINING ones count as fit, except the one in use if outlier
// detection or a health check finds it unfit. With PolicyOptions::unreachable_is_unhealthy, no
// endpoint counts as fit while the policy is in TRANSIENT_FAILURE.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const PickFirstConfig& config, PolicyContext context);

}  // namespace signalbox::lb
