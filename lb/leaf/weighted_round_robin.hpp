// SPDX-License-Identifier: Apache-2.0
//
// weighted_round_robin — endpoints take turns by weights from their own load reports (gRFCs A58,
// A114).
//
//   parent ─▶ [weighted_round_robin] ─▶ subchannel map, at most one hold per address
//              │    ▲
//              │    └─ EndpointWeight ◀─ load reports (endpoint_weight.hpp): at the ends of calls,
//              │                         or on streams that WatchLoad asks for
//              └▶ StrideScheduler in the picker (stride_scheduler.hpp, stride_picker.hpp)
//
// The policy connects its endpoints and reports its state as round_robin does (petiole.hpp). Every
// weight_update_period, and whenever the READY endpoints change, it makes a scheduler of the
// present weights. A picker has one scheduler, which never changes; a new scheduler needs a new
// picker.
//
// With slow_start_config (A100), the weights of endpoints that became READY within the slow start
// window are scaled (warmth.hpp), also the mean that an endpoint without a weight gets. The
// blackout is independent of the slow start.
//
// Invariants
//   I1  With fewer than two known weights, calls go to all READY endpoints in turn; in slow start,
//       by their factors.
//   I2  An endpoint keeps its weight while it is a member, whatever pickers come and go. A new
//       connection begins the endpoint's blackout anew.
//   I3  A period without a change of the scaled weights publishes nothing. A new period begins at
//       once.
//   I4  With enable_oob_load_report (and PolicyOptions::load_streams), exactly the READY endpoints
//       of the last picker are asked for load reports on streams, and the reports of calls are not
//       read.
//   I5  Each scheduler that is made is reported once, in a WeightsTaken (A78). When the timer's
//       scheduler differs from the picker's, the scheduler of the next picker is reported instead.
//   I6  A picker writes only the turn of the calling stripe of threads, as in round_robin.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const WeightedRoundRobinConfig& config, PolicyContext context);

}  // namespace signalbox::lb
