// SPDX-License-Identifier: Apache-2.0
//
// least_request — the least busy of a few endpoints, drawn at random (gRFC A48).
//
//   parent ─▶ [least_request] ─▶ subchannel map, one hold per address
//
// The policy connects its endpoints and reports its state as round_robin does (petiole.hpp). Each
// pick draws choice_count (2 to 10) READY endpoints, perhaps one of them twice. The call goes to
// the drawn endpoint with the fewest calls in flight; among equals, to the one drawn first.
//
// Calls in flight are those that this policy sent. Each endpoint has a CallTracker of the policy's
// own, and each call under way holds a Use of it. The CallTracker lives as long as the endpoint is
// a member, whatever happens to the connection.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const LeastRequestConfig& config, PolicyContext context);

}  // namespace signalbox::lb
