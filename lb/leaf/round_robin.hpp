// SPDX-License-Identifier: Apache-2.0
//
// round_robin — calls go to all READY endpoints in turn. Each endpoint has a PickFirst of its own
// (gRFC A61).
//
//   parent ─▶ [round_robin] ─▶ subchannel map, at most one hold per address
//
// The policy uses all endpoints that it is given, of all localities and priorities. It connects
// every endpoint at once, and again as soon as the endpoint goes IDLE. An endpoint of several
// addresses uses the first address that is READY (Happy Eyeballs, pick_first_core.hpp). The base
// class Petiole (petiole.hpp) decides when the policy publishes.
//
// With slow_start_config (Envoy), endpoints that became READY within the slow start window have
// smaller weights (warmth.hpp). While the weights differ, endpoints take turns by weight, as in
// weighted_round_robin.
//
// Invariants
//   I1  The policy is READY while any endpoint is READY, else CONNECTING while any is CONNECTING or
//       IDLE, else TRANSIENT_FAILURE.
//   I2  Each stripe of threads (striped.hpp) has a position of its own, on its own cache line. No
//       pick reads or writes the position of another stripe. A thread that has its stripe to itself
//       gives the endpoints even shares while the picker stays the same and no call is retried; in
//       slow start, shares by weight.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const RoundRobinConfig& config, PolicyContext context);

}  // namespace signalbox::lb
