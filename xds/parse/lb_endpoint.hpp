// SPDX-License-Identifier: Apache-2.0
//
// One endpoint of EDS.
//
//   xds/parse/endpoints ─▶ LbEndpoint, its health ─▶ [parse_lb_endpoint] ─▶ Endpoint
//
// Source: gRFC A27, A61 (several addresses), A76 (hash key), A81 (hostname), A86 (HTTP CONNECT).

#pragma once

#include <string>

#include "absl/container/flat_hash_set.h"

#include "messages/endpoints.hpp"
#include "signalbox/envoy/config/endpoint/v3/endpoint_components.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// What the endpoints of one cluster have between them.
struct EndpointsSoFar {
  absl::flat_hash_set<std::string> addresses;
  ProbeExceptions exceptions;
};

/// Its addresses are its own, in the whole cluster: they join those so far. What is wrong with it
/// is an error at `field`.
Endpoint parse_lb_endpoint(const envoy::config::endpoint::v3::LbEndpoint& proto,
                           HealthStatus health,
                           EndpointsSoFar& so_far,
                           const Field& field);

}  // namespace signalbox::xds
