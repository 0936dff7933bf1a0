// SPDX-License-Identifier: Apache-2.0
//
// Cluster.transport_socket: the security of connections to the cluster's endpoints.
//
//   xds/parse/cluster ─▶ [parse_transport_socket] ─▶ Cluster::tls
//
//   UpstreamTlsContext             TLS, with certificates of the bootstrap's providers     (A29)
//   Http11ProxyUpstreamTransport   an error, whatever the environment allows: a connection
//                                  must not bypass its proxy                              (A86)
//   anything else                  an error: plaintext must not replace another transport
//
// tls.hpp lists the fields of CommonTlsContext that demand a check or a setting that signalbox does
// not support. They are errors, so that connections are not less safe than configured. Other fields
// without a meaning in gRPC are ignored.
//
// Source: gRFC A29, A82 (system roots), A86.

#pragma once

#include "messages/cluster.hpp"
#include "signalbox/envoy/config/core/v3/base.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// Sets `cluster.tls`, or adds an error.
void parse_transport_socket(const envoy::config::core::v3::TransportSocket& proto,
                            Cluster& cluster,
                            const Field& field);

}  // namespace signalbox::xds
