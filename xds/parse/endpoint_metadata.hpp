// SPDX-License-Identifier: Apache-2.0
//
// Reads the metadata of an endpoint or of a locality.
//
//   xds/parse/lb_endpoint ────────────▶ [hash_key_of] ─▶ Endpoint
//   xds/parse/lb_endpoint, endpoints ─▶ [check_http_proxy] ─▶ errors only: proxies are not used
//
//   filter_metadata        envoy.lb                                            hash_key (A76)
//   typed_filter_metadata  envoy.http11_proxy_transport_socket.proxy_address   an Address (A86)
//
// Each of the two is read only if ParseOptions enable it. All other metadata is ignored.

#pragma once

#include <string>

#include "signalbox/envoy/config/core/v3/base.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// The endpoint's hash key. Empty: it has none, or ParseOptions::endpoint_hash_key is false.
std::string hash_key_of(const envoy::config::core::v3::Metadata& proto, const Field& field);

/// Adds an error if the address of a proxy is invalid and ParseOptions::http_connect is true.
/// `field` is the metadata.
void check_http_proxy(const envoy::config::core::v3::Metadata& proto, const Field& field);

}  // namespace signalbox::xds
