// SPDX-License-Identifier: Apache-2.0
//
// RouteAction.hash_policy: the inputs of a call's hash.
//
//   xds/parse/route_action ─▶ [parse_hash_policies] ─▶ ForwardAction::hash_policies
//
//   header                                a header of the call, optionally rewritten
//   filter_state io.grpc.channel_id       the same for all calls of a channel
//   anything else                         left out
//
// Source: gRFC A42.

#pragma once

#include <vector>

#include "messages/route_config.hpp"
#include "signalbox/envoy/config/route/v3/route_components.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// Returns the policies in their order. `field` is the route action.
std::vector<HashPolicy> parse_hash_policies(const envoy::config::route::v3::RouteAction& proto,
                                            const Field& field);

}  // namespace signalbox::xds
