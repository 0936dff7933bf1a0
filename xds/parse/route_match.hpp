// SPDX-License-Identifier: Apache-2.0
//
// Parses the match of a route: path, headers, fraction of calls.
//
//   xds/parse/route_config ─▶ [parse_route_match] ─▶ Route::match
//
// The matchers grpc and tls_context are ignored. Only the default value of runtime_fraction is
// used.
//
// Source: gRFC A28, A63 (string_match).

#pragma once

#include "messages/route_config.hpp"
#include "signalbox/envoy/config/route/v3/route_components.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// Whether the path of a gRPC call, "/service/method", can match. Only path and prefix matchers are
/// examined; any other matcher counts as true.
bool can_match_grpc(const envoy::config::route::v3::RouteMatch& proto);

RouteMatch parse_route_match(const envoy::config::route::v3::RouteMatch& proto, const Field& field);

}  // namespace signalbox::xds
