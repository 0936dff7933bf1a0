// SPDX-License-Identifier: Apache-2.0
//
// Which calls a route takes: path, headers, fraction.
//
//   xds/parse/route_config ─▶ [parse_route_match] ─▶ Route::match
//
// The matchers grpc and tls_context are ignored, runtime_fraction counts by its default alone.
//
// Source: gRFC A28, A63 (string_match).

#pragma once

#include "messages/route_config.hpp"
#include "signalbox/envoy/config/route/v3/route_components.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// Whether some path of a gRPC call, "/service/method", may match, as far as its path or prefix
/// tells.
bool can_match_grpc(const envoy::config::route::v3::RouteMatch& proto);

RouteMatch parse_route_match(const envoy::config::route::v3::RouteMatch& proto, const Field& field);

}  // namespace signalbox::xds
