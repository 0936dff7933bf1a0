// SPDX-License-Identifier: Apache-2.0
//
// weighted_target — shares calls among its children by weight (gRFC A28).
//
//   wrr_locality ─▶ [weighted_target] ─▶ one child policy for each locality
//
// Calls go to READY children only. When no child is READY, calls wait while a child is CONNECTING.
// Else the IDLE children take them. Else the children in TRANSIENT_FAILURE say why calls fail.
//
// Invariants
//   W1  A child that reports IDLE is told to connect again, because it gets no calls that would
//       make it connect.
//   W2  A change of the aggregated state is published at once. Changes of pickers alone wait for
//       the end of a burst of events (RebuildSoon).
//   W3  Its HostReport is the sum of its children's.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_weighted_target();

}  // namespace signalbox::lb
