// SPDX-License-Identifier: Apache-2.0
//
// least_request — the least busy of a few endpoints, drawn at random (gRFC A48).
//
//   parent ─▶ [least_request] ─▶ subchannel map, one hold per address
//
// Takes the endpoints of its slice, connects and says how it is as round_robin does (petiole.hpp).
// Each pick draws choice_count READY endpoints, any of them perhaps twice, and takes the one with
// the fewest calls in flight; of equals, the one drawn first.
//
// Calls in flight are those that this policy sent: each endpoint has a CallTracker of the policy's
// own, and who is under way holds a Use of it. It stays while the endpoint stays, whatever becomes
// of its connection.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const LeastRequestConfig& config, PolicyContext context);

}  // namespace signalbox::lb
