// SPDX-License-Identifier: Apache-2.0
#include "xds/type_url.hpp"

#include <array>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include <google/protobuf/type.pb.h>
#include <google/protobuf/util/type_resolver_util.h>

#include "signalbox/envoy/config/cluster/v3/cluster.pb.h"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "signalbox/envoy/config/listener/v3/listener.pb.h"
#include "signalbox/envoy/config/route/v3/route.pb.h"
#include "signalbox/envoy/extensions/clusters/aggregate/v3/cluster.pb.h"
#include "signalbox/envoy/extensions/filters/http/fault/v3/fault.pb.h"
#include "signalbox/envoy/extensions/filters/http/router/v3/router.pb.h"
#include "signalbox/envoy/extensions/filters/http/stateful_session/v3/stateful_session.pb.h"
#include "signalbox/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "signalbox/envoy/extensions/http/stateful_session/cookie/v3/cookie.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3/client_side_weighted_round_robin.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/least_request/v3/least_request.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/maglev/v3/maglev.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/pick_first/v3/pick_first.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/random/v3/random.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/random_subsetting/v3/random_subsetting.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/round_robin/v3/round_robin.pb.h"
#include "signalbox/envoy/extensions/load_balancing_policies/wrr_locality/v3/wrr_locality.pb.h"
#include "signalbox/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts.pb.h"
#include "signalbox/envoy/extensions/transport_sockets/http_11_proxy/v3/upstream_http_11_connect.pb.h"
#include "signalbox/envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "signalbox/envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "signalbox/envoy/service/load_stats/v3/lrs.pb.h"
#include "signalbox/envoy/service/status/v3/csds.pb.h"
#include "signalbox/udpa/type/v1/typed_struct.pb.h"
#include "signalbox/xds/type/v3/typed_struct.pb.h"

namespace signalbox::xds {
namespace {

namespace protobuf = ::google::protobuf;

constexpr char kHost[] = "type.googleapis.com";
constexpr absl::string_view kPrefix = "signalbox.";

// The type URLs of resources, in the order of the enumerators of ResourceType.
constexpr std::array kResourceTypeUrls = {
    kListenerTypeUrl, kRouteConfigurationTypeUrl, kClusterTypeUrl, kClusterLoadAssignmentTypeUrl};

std::string url_of(absl::string_view full_name) {
  return absl::StrCat(kHost, "/", absl::StripPrefix(full_name, kPrefix));
}

// Converts a type URL of protobuf's own resolver to the API's spelling.
void to_api_spelling(std::string& type_url) {
  if (!type_url.empty()) type_url = url_of(api_name(type_url));
}

const protobuf::DescriptorPool& pool() {
  return *protobuf::DescriptorPool::generated_pool();
}

protobuf::util::Status unknown(const std::string& type_url) {
  return protobuf::util::NotFoundError(absl::StrCat("unknown type ", type_url));
}

// The linker takes only referenced objects from a static library, and a program may reference no
// message that occurs only inside an Any. Every such message therefore has a row here. The messages
// that it contains are linked with it.
bool link_messages() {
  const std::array descriptors = {
      envoy::config::cluster::v3::Cluster::descriptor(),
      envoy::config::endpoint::v3::ClusterLoadAssignment::descriptor(),
      envoy::config::listener::v3::Listener::descriptor(),
      envoy::config::route::v3::RouteConfiguration::descriptor(),
      envoy::extensions::clusters::aggregate::v3::ClusterConfig::descriptor(),
      envoy::extensions::filters::http::router::v3::Router::descriptor(),
      envoy::extensions::filters::http::fault::v3::HTTPFault::descriptor(),
      envoy::extensions::filters::http::stateful_session::v3::StatefulSession::descriptor(),
      envoy::extensions::filters::http::stateful_session::v3::StatefulSessionPerRoute::descriptor(),
      envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager::
          descriptor(),
      envoy::extensions::load_balancing_policies::pick_first::v3::PickFirst::descriptor(),
      envoy::extensions::http::stateful_session::cookie::v3::CookieBasedSessionState::descriptor(),
      envoy::extensions::load_balancing_policies::client_side_weighted_round_robin::v3::
          ClientSideWeightedRoundRobin::descriptor(),
      envoy::extensions::load_balancing_policies::least_request::v3::LeastRequest::descriptor(),
      envoy::extensions::load_balancing_policies::maglev::v3::Maglev::descriptor(),
      envoy::extensions::load_balancing_policies::random::v3::Random::descriptor(),
      envoy::extensions::load_balancing_policies::random_subsetting::v3::RandomSubsetting::
          descriptor(),
      envoy::extensions::load_balancing_policies::ring_hash::v3::RingHash::descriptor(),
      envoy::extensions::load_balancing_policies::round_robin::v3::RoundRobin::descriptor(),
      envoy::extensions::load_balancing_policies::wrr_locality::v3::WrrLocality::descriptor(),
      envoy::extensions::retry::host::previous_hosts::v3::PreviousHostsPredicate::descriptor(),
      envoy::extensions::transport_sockets::http_11_proxy::v3::Http11ProxyUpstreamTransport::
          descriptor(),
      envoy::extensions::transport_sockets::tls::v3::UpstreamTlsContext::descriptor(),
      envoy::extensions::upstreams::http::v3::HttpProtocolOptions::descriptor(),
      envoy::service::discovery::v3::Resource::descriptor(),
      envoy::service::load_stats::v3::LoadStatsRequest::descriptor(),
      envoy::service::load_stats::v3::LoadStatsResponse::descriptor(),
      envoy::service::status::v3::ClientStatusRequest::descriptor(),
      envoy::service::status::v3::ClientStatusResponse::descriptor(),
      udpa::type::v1::TypedStruct::descriptor(),
      signalbox::xds::type::v3::TypedStruct::descriptor(),
  };
  return absl::c_none_of(
      descriptors, [](const protobuf::Descriptor* descriptor) { return descriptor == nullptr; });
}

class PrefixingResolver final : public protobuf::util::TypeResolver {
 public:
  PrefixingResolver()
      : pool_resolver_(protobuf::util::NewTypeResolverForDescriptorPool(kHost, &pool())) {}

  protobuf::util::Status ResolveMessageType(const std::string& type_url,
                                            protobuf::Type* type) override {
    const protobuf::Descriptor* message = find_message(type_url);
    if (message == nullptr) return unknown(type_url);
    const auto status = pool_resolver_->ResolveMessageType(pool_url_of(*message), type);
    for (protobuf::Field& field : *type->mutable_fields())
      to_api_spelling(*field.mutable_type_url());
    return status;
  }

  protobuf::util::Status ResolveEnumType(const std::string& type_url,
                                         protobuf::Enum* type) override {
    const protobuf::EnumDescriptor* found = find_enum(api_name(type_url));
    if (found == nullptr) return unknown(type_url);
    return pool_resolver_->ResolveEnumType(pool_url_of(*found), type);
  }

 private:
  // The URL under which protobuf's own resolver knows a descriptor.
  template <typename Descriptor>
  static std::string pool_url_of(const Descriptor& descriptor) {
    return absl::StrCat(kHost, "/", descriptor.full_name());
  }

  static const protobuf::EnumDescriptor* find_enum(absl::string_view name) {
    const auto* ours = pool().FindEnumTypeByName(absl::StrCat(kPrefix, name));
    return ours != nullptr ? ours : pool().FindEnumTypeByName(std::string(name));
  }

  std::unique_ptr<protobuf::util::TypeResolver> pool_resolver_;
};

}  // namespace

std::string type_url_of(const protobuf::Descriptor& descriptor) {
  return url_of(descriptor.full_name());
}

absl::string_view type_url_of(ResourceType type) {
  return kResourceTypeUrls[static_cast<std::size_t>(type)];
}

std::optional<ResourceType> resource_type_of(absl::string_view type_url) {
  const auto found = absl::c_find(kResourceTypeUrls, type_url);
  if (found == kResourceTypeUrls.end()) return std::nullopt;
  return static_cast<ResourceType>(found - kResourceTypeUrls.begin());
}

absl::string_view api_name(absl::string_view type_url) {
  return type_url.substr(type_url.rfind('/') + 1);
}

const protobuf::Descriptor* find_message(absl::string_view type_url) {
  static const bool linked = link_messages();
  const absl::string_view name = api_name(type_url);
  if (!linked || absl::StartsWith(name, kPrefix)) return nullptr;
  const auto* ours = pool().FindMessageTypeByName(absl::StrCat(kPrefix, name));
  return ours != nullptr ? ours : pool().FindMessageTypeByName(std::string(name));
}

std::unique_ptr<protobuf::util::TypeResolver> make_type_resolver() {
  return std::make_unique<PrefixingResolver>();
}

}  // namespace signalbox::xds
