// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/resources.hpp"

#include <vector>

#include "absl/strings/substitute.h"

#include "messages/invariant.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/resource_file.hpp"
#include "xds/type_url.hpp"

namespace signalbox::fleet {
namespace {

// $0 is a number of seconds, a weight or a port: whatever the version can change.
absl::string_view text_of(ResourceType type) {
  switch (type) {
    case ResourceType::kListener:
      return R"(
  - "@type": type.googleapis.com/envoy.config.listener.v3.Listener
    name: orders
    api_listener:
      api_listener:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        rds: {route_config_name: orders, config_source: {ads: {}}}
        common_http_protocol_options: {max_stream_duration: $0s}
        http_filters:
          - name: router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
)";
    case ResourceType::kRouteConfig:
      return R"(
  - "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
    name: orders
    virtual_hosts:
      - name: all
        domains: ["*"]
        routes:
          - {match: {prefix: ""}, route: {cluster: orders, max_stream_duration: {max_stream_duration: $0s}}}
)";
    case ResourceType::kCluster:
      return R"(
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    type: EDS
    eds_cluster_config: {eds_config: {ads: {}}}
    connect_timeout: $0s
)";
    case ResourceType::kEndpoints:
      return R"(
  - "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
    cluster_name: orders
    endpoints:
      - locality: {region: r, zone: z}
        load_balancing_weight: $0
        lb_endpoints:
          - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 8080}}}
)";
  }
  return "";
}

// A cluster that clients refuse by its name: it has no type that they know.
const char kBadCluster[] = R"(
  - "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: orders
    type: STRICT_DNS
    connect_timeout: $0s
)";

}  // namespace

std::string response_of(ResourceType type, std::uint64_t version, bool valid) {
  SIGNALBOX_INVARIANT(valid || type == ResourceType::kCluster, "only a cluster can be bad");
  const std::string text = absl::Substitute(valid ? text_of(type) : kBadCluster, version);
  const auto parsed = xds::parse_resources_text("resources:" + text, xds::Format::kYaml, "fleet");
  SIGNALBOX_INVARIANT(parsed.ok(), "the resources of the fleet can be read");
  envoy::service::discovery::v3::DiscoveryResponse response;
  response.set_type_url(std::string(xds::type_url_of(type)));
  response.set_version_info(std::to_string(version));
  for (const xds::ResourceBytes& resource : *parsed) {
    auto& any = *response.add_resources();
    any.set_type_url(resource.type_url);
    any.set_value(resource.bytes);
  }
  return response.SerializeAsString();
}

}  // namespace signalbox::fleet
