// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/address.hpp"

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "xds/parse/ip_literal.hpp"
#include "xds/parse/well_known.hpp"

namespace signalbox::xds {
namespace {

using AddressProto = envoy::config::core::v3::Address;
using envoy::config::core::v3::SocketAddress;

bool require_socket_address(const AddressProto& proto, const Field& field) {
  if (proto.has_socket_address()) return true;
  const char* found = proto.has_pipe()                     ? "pipe"
                      : proto.has_envoy_internal_address() ? "envoy_internal_address"
                                                           : "none";
  field.at("socket_address").add(absl::StrCat("must be set, found ", found));
  return false;
}

void require_port(const SocketAddress& proto, std::uint32_t least, const Field& field) {
  const Field port = field.at("port_value");
  if (!proto.has_port_value()) {
    port.add(proto.has_named_port()
                 ? absl::StrCat("must be set, found named_port ", in_quotes(proto.named_port()))
                 : std::string("must be set, found none"));
  } else if (proto.port_value() < least || proto.port_value() > kMaxPort) {
    port.add(absl::StrCat("must be in [", least, ", ", kMaxPort, "], found ", proto.port_value()));
  }
}

// Joins a host and a port: "1.2.3.4:80", "[::1]:80", "orders.example:443".
std::string join(absl::string_view host, std::uint32_t port) {
  const bool v6 = absl::StrContains(host, ':') && host.front() != '[';
  return v6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

}  // namespace

std::string parse_address(const AddressProto& proto, const Field& field) {
  if (!require_socket_address(proto, field)) return {};
  const SocketAddress& socket = proto.socket_address();
  const Field place = field.at("socket_address");
  const auto ip = canonical_ip(socket.address());
  if (!ip.has_value()) {
    place.at("address").add(
        absl::StrCat("must be an IPv4 or IPv6 literal, found ", in_quotes(socket.address())));
  }
  require_port(socket, 1, place);
  return join(ip.value_or(""), socket.port_value());
}

DnsName parse_dns_name(const AddressProto& proto, const Field& field) {
  if (!require_socket_address(proto, field)) return {};
  const SocketAddress& socket = proto.socket_address();
  const Field place = field.at("socket_address");
  if (!socket.resolver_name().empty()) {
    place.at("resolver_name")
        .add(absl::StrCat("must not be set, found ", in_quotes(socket.resolver_name())));
  }
  require_name(socket.address(), place.at("address"));
  // A37 only requires that the port is set, so 0 is valid.
  require_port(socket, 0, place);
  return DnsName{join(socket.address(), socket.port_value())};
}

}  // namespace signalbox::xds
