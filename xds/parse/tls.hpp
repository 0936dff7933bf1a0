// SPDX-License-Identifier: Apache-2.0
//
// UpstreamTlsContext: whose roots are trusted, which certificate is shown, which names the server
// must have.
//
//   xds/parse/transport_socket ─▶ [parse_tls] ─▶ Cluster::tls
//
//   roots     the provider of the validation context, else the system's; one must be named
//   identity  the provider of our own certificate; may be absent
//
// Providers are instances of the bootstrap's certificate_providers; any other name is an error, as
// is every other way to come by certificates (inline, SDS) and every check that we cannot make. A
// text with a NUL in it is an error: names in certificates were forged with them.
//
// Source: gRFC A29 (CommonTlsContext), A82 (system roots).

#pragma once

#include "messages/cluster_settings.hpp"
#include "signalbox/envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// To be used only if no error was added.
UpstreamTls parse_tls(
    const envoy::extensions::transport_sockets::tls::v3::UpstreamTlsContext& proto,
    const Field& field);

}  // namespace signalbox::xds
