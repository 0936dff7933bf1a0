// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/listener.hpp"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "messages/listener.hpp"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "xds/parse/http_filter.hpp"
#include "xds/parse/route_config.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using envoy::extensions::filters::network::http_connection_manager::v3::Rds;
using ListenerProto = envoy::config::listener::v3::Listener;

RdsName parse_rds(const Rds& proto, const Field& field) {
  const Field source = field.at("config_source");
  if (proto.has_config_source()) {
    require_ads(proto.config_source(), source);
  } else {
    source.add("must be set, found none");
  }
  require_name(proto.route_config_name(), field.at("route_config_name"));
  return RdsName{proto.route_config_name()};
}

void parse_connection_manager(const HttpConnectionManager& proto,
                              Listener& listener,
                              const Field& field) {
  switch (proto.route_specifier_case()) {
    case HttpConnectionManager::kRds:
      listener.routes = parse_rds(proto.rds(), field.at("rds"));
      break;
    case HttpConnectionManager::kRouteConfig:
      require_name_length(proto.route_config().name(), field.at("route_config.name"));
      listener.routes = std::make_shared<const RouteConfig>(
          to_route_config(proto.route_config(), field.at("route_config")));
      break;
    case HttpConnectionManager::kScopedRoutes:
      field.add("rds or route_config must be set, found scoped_routes");
      break;
    case HttpConnectionManager::ROUTE_SPECIFIER_NOT_SET:
      field.add("rds or route_config must be set, found none");
      break;
  }
  if (proto.common_http_protocol_options().has_max_stream_duration()) {
    listener.max_stream_duration =
        parse_duration(proto.common_http_protocol_options().max_stream_duration(),
                       field.at("common_http_protocol_options.max_stream_duration"));
  }
  // A41: must be 0, because calls are not routed by the address of their caller.
  if (proto.xff_num_trusted_hops() != 0) {
    field.at("xff_num_trusted_hops")
        .add(absl::StrCat("must be 0, found ", proto.xff_num_trusted_hops()));
  }
  if (!proto.original_ip_detection_extensions().empty()) {
    field.at("original_ip_detection_extensions")
        .add(absl::StrCat(
            "must be empty, found ", proto.original_ip_detection_extensions_size(), " entries"));
  }
  listener.filters = parse_http_filters(proto.http_filters(), field);
}

void parse_api_listener(const ListenerProto& proto, Listener& listener, const Field& top) {
  if (!proto.has_api_listener()) {
    listener.routes = SocketListener{};
    if (!proto.has_address()) {
      top.at("api_listener").add("must be set, or address for a listener of servers, found none");
    }
    return;
  }
  const Field field = top.at("api_listener.api_listener");
  const auto& any = proto.api_listener().api_listener();
  if (any.type_url() != type_url_of<HttpConnectionManager>()) {
    field.at("type_url")
        .add(absl::StrCat("must be ",
                          type_url_of<HttpConnectionManager>(),
                          ", found ",
                          in_quotes(any.type_url())));
    return;
  }
  HttpConnectionManager manager;
  if (!decode(any.value(), manager, field.at("value"))) return;
  parse_connection_manager(manager, listener, field);
}

}  // namespace

ReceivedResource parse_listener(absl::string_view bytes, const ParseOptions& options) {
  ListenerProto proto;
  if (!decode(bytes, proto)) return undecodable("LDS", "a Listener", bytes, proto, proto.name());
  ValidationErrors errors(options);
  auto listener = std::make_shared<Listener>();
  listener->name = proto.name();
  require_name(proto.name(), errors.top().at("name"));
  parse_api_listener(proto, *listener, errors.top());
  if (!errors.empty()) return errors.refuse("LDS", proto.name());
  return {proto.name(), Resource{std::shared_ptr<const Listener>(std::move(listener))}};
}

}  // namespace signalbox::xds
