// SPDX-License-Identifier: Apache-2.0
//
// Parses UpstreamTlsContext: the trusted roots, the client's certificate, and the allowed names of
// the server.
//
//   xds/parse/transport_socket ─▶ [parse_tls] ─▶ Cluster::tls
//
//   roots     the provider of the validation context, else the system's roots; one must be set
//   identity  the provider of the client's certificate; may be absent
//
// Providers must be instances of the bootstrap's certificate_providers. Other sources of
// certificates (inline, SDS) are never used. They are errors if neither a provider nor, for roots,
// the system's roots are named beside them.
//
// These fields ask for something that signalbox does not support, and are errors:
// verify_certificate_spki, verify_certificate_hash, require_signed_certificate_timestamp, crl,
// custom_validator_config, tls_params, custom_handshaker, and match_typed_subject_alt_names without
// match_subject_alt_names. Typed matchers beside match_subject_alt_names are ignored.
//
// A NUL in a matcher or in a certificate_name is an error: names in certificates have been forged
// with NULs.
//
// Source: gRFC A29 (CommonTlsContext), A82 (system roots).

#pragma once

#include "messages/cluster_settings.hpp"
#include "signalbox/envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// The result must be used only if no error was added.
UpstreamTls parse_tls(
    const envoy::extensions::transport_sockets::tls::v3::UpstreamTlsContext& proto,
    const Field& field);

}  // namespace signalbox::xds
