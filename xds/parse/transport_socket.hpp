// SPDX-License-Identifier: Apache-2.0
//
// Cluster.transport_socket: how connections are secured.
//
//   xds/parse/cluster ─▶ [parse_transport_socket] ─▶ Cluster::tls
//
//   UpstreamTlsContext             TLS, with certificates of the bootstrap's providers     (A29)
//   Http11ProxyUpstreamTransport   an error, whatever the environment allows: a connection that
//                                  is to go through a proxy must not go straight          (A86)
//   anything else                  an error: never plaintext instead of what was asked for
//
// The fields of CommonTlsContext that gRPC has no meaning for are ignored, but those that would
// make a connection safer than we can are errors, so that none is less safe than it was meant to
// be.
//
// Source: gRFC A29, A82 (system roots), A86.

#pragma once

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/core/v3/base.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// Sets `cluster.tls`.
void parse_transport_socket(const envoy::config::core::v3::TransportSocket& proto,
                            Cluster& cluster,
                            const Field& field);

}  // namespace signalbox::xds
