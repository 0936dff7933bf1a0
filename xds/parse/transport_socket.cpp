// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/transport_socket.hpp"

#include "absl/strings/str_cat.h"

#include "signalbox/envoy/extensions/transport_sockets/http_11_proxy/v3/upstream_http_11_connect.pb.h"
#include "xds/parse/extension.hpp"
#include "xds/parse/tls.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::config::core::v3::TransportSocket;
using envoy::extensions::transport_sockets::http_11_proxy::v3::Http11ProxyUpstreamTransport;
using envoy::extensions::transport_sockets::tls::v3::UpstreamTlsContext;

template <typename Message>
bool is_a(const Extension& extension) {
  return extension.type == api_name(type_url_of<Message>());
}

}  // namespace

void parse_transport_socket(const TransportSocket& proto, Cluster& cluster, const Field& field) {
  const Field config = field.at("typed_config");
  if (!proto.has_typed_config()) return config.add("must be set, found none");
  const auto extension = read_extension(proto.typed_config(), config);
  if (!extension.has_value()) return;
  const Field value = config.at("value");
  if (is_a<UpstreamTlsContext>(*extension)) {
    UpstreamTlsContext context;
    if (decode(*extension, context, value)) cluster.tls = parse_tls(context, value);
  } else {
    const bool is_proxy = is_a<Http11ProxyUpstreamTransport>(*extension);
    config.at("type_url")
        .add(absl::StrCat(
            "must be UpstreamTlsContext, found ",
            in_quotes(extension->type),
            is_proxy ? "; connections through HTTP CONNECT proxies are not supported" : ""));
  }
}

}  // namespace signalbox::xds
