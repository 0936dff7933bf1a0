// SPDX-License-Identifier: Apache-2.0
//
// Parses one endpoint of EDS.
//
//   xds/parse/endpoints ─▶ LbEndpoint, its health ─▶ [parse_lb_endpoint] ─▶ Endpoint
//
// Source: gRFC A27, A61 (several addresses), A76 (hash key), A81 (hostname), A86 (HTTP CONNECT).

#pragma once

#include "absl/container/flat_hash_set.h"

#include "messages/endpoints.hpp"
#include "messages/ids.hpp"
#include "signalbox/envoy/config/endpoint/v3/endpoint_components.pb.h"
#include "xds/parse/known_addresses.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// The addresses and probe exceptions of all endpoints of one cluster so far, and the addresses
/// that the cluster had before.
struct EndpointsSoFar {
  KnownAddresses known;
  absl::flat_hash_set<Address> addresses;
  ProbeExceptions exceptions;
};

/// An address must be unique in the whole cluster: it is checked against `so_far`, and added there.
/// Errors of the endpoint are added at `field`.
Endpoint parse_lb_endpoint(const envoy::config::endpoint::v3::LbEndpoint& proto,
                           HealthStatus health,
                           EndpointsSoFar& so_far,
                           const Field& field);

}  // namespace signalbox::xds
