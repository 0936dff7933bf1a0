// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/endpoint_metadata.hpp"

#include "signalbox/envoy/config/core/v3/address.pb.h"
#include "xds/parse/address.hpp"
#include "xds/parse/extension.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::config::core::v3::Metadata;
using AddressProto = envoy::config::core::v3::Address;

constexpr char kHashKeys[] = "envoy.lb";
constexpr char kProxyAddress[] = "envoy.http11_proxy_transport_socket.proxy_address";

}  // namespace

std::string hash_key_of(const Metadata& proto, const Field& field) {
  if (!field.options().endpoint_hash_key) return "";
  const auto found = proto.filter_metadata().find(kHashKeys);
  if (found == proto.filter_metadata().end()) return "";
  const auto key = found->second.fields().find("hash_key");
  return key == found->second.fields().end() ? "" : key->second.string_value();
}

void check_http_proxy(const Metadata& proto, const Field& field) {
  if (!field.options().http_connect) return;
  const auto found = proto.typed_filter_metadata().find(kProxyAddress);
  if (found == proto.typed_filter_metadata().end()) return;
  const Field entry = field.at_key("typed_filter_metadata", kProxyAddress);
  const auto extension = read_extension(found->second, entry);
  // A value of another type is metadata for another purpose.
  if (!extension.has_value() || extension->type != api_name(type_url_of<AddressProto>())) return;
  const Field value = entry.at("value");
  AddressProto address;
  if (decode(*extension, address, value)) parse_address(address, value);
}

}  // namespace signalbox::xds
