// SPDX-License-Identifier: Apache-2.0
//
// least_request — the least busy of a few endpoints, drawn at random (gRFC A48).
//
//   parent ─▶ [least_request] ─▶ subchannel map, at most one hold per address
//
// The policy connects its endpoints and reports its state as round_robin does (petiole.hpp). Each
// pick draws choice_count (2 to 10) READY endpoints, perhaps one of them repeatedly. The call goes
// to the drawn endpoint with the fewest calls in flight; among equals, to the one drawn first.
//
// Only calls that this policy sent count. The policy has a CallTracker for each endpoint. Each
// running call holds a counted reference to it (a Use, messages/counting/tracked.hpp), so the
// number of references is the number of calls in flight. The CallTracker stays while the endpoint
// is a member, even if the connection changes.
//
// With slow_start_config (Envoy), endpoints that became READY within the slow start window have
// smaller weights (warmth.hpp). While the weights differ, endpoints are drawn by weight. The call
// goes to the drawn endpoint with the least quotient of calls in flight and weight. Without calls
// in flight the shares follow the weights. With many calls, the calls in flight follow the weights.
//
// With active_request_bias (Envoy), the weights of endpoints (EDS) count too, multiplied by the
// factors of slow start. While these weights differ, choice_count endpoints are drawn by weight.
// One of these gets the call by chance, in proportion to 1 / (calls in flight + 1)^bias. So a call
// goes to an endpoint about in proportion to Envoy's weight / (calls in flight + 1)^bias. With bias
// 0 the shares follow the weights exactly.

#pragma once

#include <memory>

#include "lb/policy.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const LeastRequestConfig& config, PolicyContext context);

}  // namespace signalbox::lb
