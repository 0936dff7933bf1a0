// SPDX-License-Identifier: Apache-2.0
//
// RDS: a serialised envoy.config.route.v3.RouteConfiguration becomes a RouteConfig.
//
//   bytes ─▶ [parse_route_config] ─▶ RouteConfig ─▶ dependency manager
//   parse_listener, inline route_config ─▶ [to_route_config] ─▶ Listener::routes
//
// Routes with unsupported features (query_parameters, other cluster specifiers) are left out, and
// so are routes that no gRPC call can match (ParseOptions::grpc_paths_only). An invalid route is an
// error. A configuration without any route left is valid.
//
// Source: gRFC A28 and A63 (matching), A31 (timeouts), A36 (actions), A39
// (overrides), A44 (a virtual host's retry policy).

#pragma once

#include "absl/strings/string_view.h"

#include "messages/route_config.hpp"
#include "messages/xds_events.hpp"
#include "xds/parse/parse_options.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::envoy::config::route::v3 {
class RouteConfiguration;
}

namespace signalbox::xds {

/// Parses and checks a resource. The result's name is empty if the bytes have no readable name.
ReceivedResource parse_route_config(absl::string_view bytes, const ParseOptions& options = {});

/// The result must be used only if no error was added. An inline configuration needs no name.
RouteConfig to_route_config(const envoy::config::route::v3::RouteConfiguration& proto,
                            const Field& field);

}  // namespace signalbox::xds
