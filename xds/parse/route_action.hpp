// SPDX-License-Identifier: Apache-2.0
//
// Where a route sends its calls, and how long they may take.
//
//   xds/parse/route_config ─▶ [parse_route_action] ─▶ Route::action
//
// Source: gRFC A28 (clusters), A31 (timeouts; timeout and grpc_timeout_header_offset are ignored),
// A36 (an action other than `route` is accepted: calls that match it fail), A42 (hash policies),
// A44 (retries), A81 (auto_host_rewrite).

#pragma once

#include <optional>
#include <variant>

#include "messages/route_config.hpp"
#include "signalbox/envoy/config/route/v3/route_components.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// nullopt: the route is ignored, because its cluster specifier is none that we support, or an
/// error was added. `field` is the route's. `host_retry`: where the route has no retry policy.
std::optional<std::variant<ForwardAction, UnsupportedAction>> parse_route_action(
    const envoy::config::route::v3::Route& proto,
    const std::optional<RetryPolicy>& host_retry,
    const Field& field);

}  // namespace signalbox::xds
