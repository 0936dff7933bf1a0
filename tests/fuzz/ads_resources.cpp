// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/ads_resources.hpp"

#include <chrono>
#include <memory>

#include "absl/strings/str_cat.h"

#include "messages/overloaded.hpp"
#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "signalbox/envoy/extensions/filters/http/router/v3/router.pb.h"
#include "signalbox/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/type_url.hpp"

namespace signalbox::fuzz {
namespace {

using ::google::protobuf::Any;
using ::google::protobuf::Message;
namespace api = envoy::config;

void pack(const Message& message, Any& any) {
  any.set_type_url(xds::type_url_of(*message.GetDescriptor()));
  any.set_value(message.SerializeAsString());
}

std::string listener(const std::string& name, int content) {
  namespace http = envoy::extensions::filters;
  http::network::http_connection_manager::v3::HttpConnectionManager manager;
  manager.mutable_rds()->mutable_config_source()->mutable_ads();
  manager.mutable_rds()->set_route_config_name("r");
  manager.mutable_common_http_protocol_options()->mutable_max_stream_duration()->set_seconds(
      content);
  auto& router = *manager.add_http_filters();
  router.set_name("router");
  pack(http::http::router::v3::Router(), *router.mutable_typed_config());
  api::listener::v3::Listener proto;
  proto.set_name(name);
  pack(manager, *proto.mutable_api_listener()->mutable_api_listener());
  return proto.SerializeAsString();
}

std::string route_config(const std::string& name, int content) {
  api::route::v3::RouteConfiguration proto;
  proto.set_name(name);
  auto& host = *proto.add_virtual_hosts();
  host.add_domains(absl::StrCat("d", content));
  auto& route = *host.add_routes();
  route.mutable_match()->set_prefix("");
  route.mutable_route()->set_cluster("c");
  return proto.SerializeAsString();
}

std::string cluster(const std::string& name, int content) {
  api::cluster::v3::Cluster proto;
  proto.set_name(name);
  proto.set_type(api::cluster::v3::Cluster::EDS);
  proto.mutable_eds_cluster_config()->mutable_eds_config()->mutable_ads();
  proto.mutable_connect_timeout()->set_seconds(1 + content);
  return proto.SerializeAsString();
}

std::string endpoints(const std::string& name, int content) {
  api::endpoint::v3::ClusterLoadAssignment proto;
  proto.set_cluster_name(name);
  proto.mutable_policy()->mutable_overprovisioning_factor()->set_value(
      static_cast<std::uint32_t>(100 + content));
  return proto.SerializeAsString();
}

std::string bytes_of(ResourceType type, const SentResource& resource) {
  switch (type) {
    case ResourceType::kListener:
      return listener(resource.name, resource.content);
    case ResourceType::kRouteConfig:
      return route_config(resource.name, resource.content);
    case ResourceType::kCluster:
      return cluster(resource.name, resource.content);
    case ResourceType::kEndpoints:
      return endpoints(resource.name, resource.content);
  }
  return "";
}

void encode(ResourceType type, const SentResource& resource, Any& any) {
  const std::string type_url(xds::type_url_of(type));
  any.set_type_url(type_url);
  switch (resource.form) {
    case SentResource::Form::kValid:
      any.set_value(bytes_of(type, resource));
      return;
    case SentResource::Form::kInvalid: {
      envoy::service::discovery::v3::Resource wrapper;
      wrapper.set_name(resource.name);
      wrapper.mutable_resource()->set_type_url("type.googleapis.com/x.Y");
      pack(wrapper, any);
      return;
    }
    case SentResource::Form::kUnnamed:
      any.set_value("\xff");
      return;
  }
}

}  // namespace

std::string encode(const SentResponse& response) {
  envoy::service::discovery::v3::DiscoveryResponse proto;
  proto.set_type_url(std::string(xds::type_url_of(response.type)));
  proto.set_version_info(response.version);
  proto.set_nonce(response.nonce);
  for (const SentResource& resource : response.resources)
    encode(response.type, resource, *proto.add_resources());
  for (const SentError& error : response.errors) {
    auto& added = *proto.add_resource_errors();
    added.mutable_resource_name()->set_name(error.name);
    added.mutable_error_detail()->set_code(static_cast<int>(error.code));
    added.mutable_error_detail()->set_message("so says the server");
  }
  return proto.SerializeAsString();
}

int content_of(const Resource& resource) {
  using std::chrono::seconds;
  return std::visit(Overloaded{
                        [](const std::shared_ptr<const Listener>& listener) {
                          return static_cast<int>(
                              listener->max_stream_duration.value_or(seconds(-1)) / seconds(1));
                        },
                        [](const std::shared_ptr<const RouteConfig>& config) {
                          return config->virtual_hosts.at(0).domains.at(0).at(1) - '0';
                        },
                        [](const std::shared_ptr<const Cluster>& cluster) {
                          return static_cast<int>(cluster->connect_timeout / seconds(1)) - 1;
                        },
                        [](const EndpointsPtr& endpoints) {
                          return static_cast<int>(endpoints->overprovisioning_percent) - 100;
                        },
                    },
                    resource);
}

}  // namespace signalbox::fuzz
