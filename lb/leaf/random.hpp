// SPDX-License-Identifier: Apache-2.0
//
// random — each call goes to a READY endpoint that is drawn at random (Envoy's policy `random`).
//
//   parent ─▶ [random] ─▶ subchannel map, at most one hold per address
//
// The policy connects its endpoints and reports its state as round_robin does (petiole.hpp). The
// draw is computed from the call's seed, so a pick writes no memory that other picks read. As in
// round_robin, the weights of endpoints are ignored.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const RandomConfig& config, PolicyContext context);

}  // namespace signalbox::lb
