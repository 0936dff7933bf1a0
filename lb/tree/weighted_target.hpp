// SPDX-License-Identifier: Apache-2.0
//
// weighted_target — shares calls among its children by weight (gRFC A28).
//
//   wrr_locality ─▶ [weighted_target] ─▶ one child policy for each locality
//
// Calls go to READY children only. When no child is READY they wait for one that connects; else
// an IDLE child decides; else those in TRANSIENT_FAILURE say why.
//
// Invariants
//   W1  A child that reports IDLE is asked to connect again: it gets no calls that would ask.
//   W2  A change of the aggregated state is published at once; for a mere change of pickers one
//       RebuildSoon stands for the whole burst.
//   W3  Its HostReport is the sum of its children's.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_weighted_target();

}  // namespace signalbox::lb
