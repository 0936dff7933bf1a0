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

void parse_socket(const TransportSocket& proto,
                  bool in_proxy,
                  Cluster& cluster,
                  const Field& field);

void parse_proxy(const Extension& extension, Cluster& cluster, const Field& field) {
  Http11ProxyUpstreamTransport proxy;
  if (!decode(extension, proxy, field)) return;
  cluster.http_connect = true;
  if (proxy.has_transport_socket())
    parse_socket(proxy.transport_socket(), true, cluster, field.at("transport_socket"));
}

void parse_socket(const TransportSocket& proto,
                  bool in_proxy,
                  Cluster& cluster,
                  const Field& field) {
  const Field config = field.at("typed_config");
  if (!proto.has_typed_config()) return config.add("must be set, found none");
  const auto extension = read_extension(proto.typed_config(), config);
  if (!extension.has_value()) return;
  const Field value = config.at("value");
  const bool proxy_allowed = field.options().http_connect && !in_proxy;
  if (is_a<UpstreamTlsContext>(*extension)) {
    UpstreamTlsContext context;
    if (decode(*extension, context, value)) cluster.tls = parse_tls(context, value);
  } else if (proxy_allowed && is_a<Http11ProxyUpstreamTransport>(*extension)) {
    parse_proxy(*extension, cluster, value);
  } else {
    config.at("type_url")
        .add(absl::StrCat("must be UpstreamTlsContext",
                          proxy_allowed ? " or Http11ProxyUpstreamTransport" : "",
                          ", found ",
                          quoted(extension->type)));
  }
}

}  // namespace

void parse_transport_socket(const TransportSocket& proto, Cluster& cluster, const Field& field) {
  parse_socket(proto, false, cluster, field);
}

}  // namespace signalbox::xds
