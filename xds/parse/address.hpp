// SPDX-License-Identifier: Apache-2.0
//
// Parses envoy.config.core.v3.Address as an address to connect to (EDS) or a name to resolve (CDS).
//
//   xds/parse/lb_endpoint, endpoint_metadata ─▶ [parse_address] ─▶ "1.2.3.4:80", "[::1]:80"
//   xds/parse/discovery ─▶ [parse_dns_name] ─▶ "orders.example:443"
//
// Source: gRFC A27 (literals only), A37 (LOGICAL_DNS).

#pragma once

#include <cstdint>
#include <string>

#include "messages/ids.hpp"
#include "signalbox/envoy/config/core/v3/address.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

inline constexpr std::uint32_t kMaxPort = 65'535;

/// The text of an Address: an IP literal and a port, in canonical form, so that equal addresses
/// have equal texts.
std::string parse_address(const envoy::config::core::v3::Address& proto, const Field& field);

/// A host and a port, to be resolved by DNS.
DnsName parse_dns_name(const envoy::config::core::v3::Address& proto, const Field& field);

}  // namespace signalbox::xds
