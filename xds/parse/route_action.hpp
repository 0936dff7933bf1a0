// SPDX-License-Identifier: Apache-2.0
//
// Parses the action of a route: its clusters, timeouts, retries and hash policies.
//
//   xds/parse/route_config ─▶ [parse_route_action] ─▶ Route::action
//
// Source: gRFC A28 (clusters), A31 (timeouts; timeout is validated but not used,
// grpc_timeout_header_offset is ignored), A36 (an action other than `route` is accepted: calls that
// match it fail), A42 (hash policies), A44 (retries), A81 (auto_host_rewrite).

#pragma once

#include <optional>
#include <variant>

#include "messages/route_config.hpp"
#include "signalbox/envoy/config/route/v3/route_components.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// nullopt: the route is left out, because its cluster specifier is not supported. `field` is the
/// route. `host_retry`: the virtual host's retry policy, used if the route has none.
std::optional<std::variant<ForwardAction, UnsupportedAction>> parse_route_action(
    const envoy::config::route::v3::Route& proto,
    const std::optional<RetryPolicy>& host_retry,
    const Field& field);

}  // namespace signalbox::xds
