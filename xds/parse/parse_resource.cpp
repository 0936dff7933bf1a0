// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/parse_resource.hpp"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "messages/invariant.hpp"
#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/limits.hpp"
#include "xds/parse/cluster.hpp"
#include "xds/parse/endpoints.hpp"
#include "xds/parse/listener.hpp"
#include "xds/parse/route_config.hpp"
#include "xds/parse/validation_errors.hpp"
#include "xds/parse/well_known.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::service::discovery::v3::DiscoveryResponse;
using ResourceWrapper = envoy::service::discovery::v3::Resource;

ReceivedResource failed(ResourceType type, std::string name, absl::string_view what) {
  ValidationErrors errors;
  errors.top().add(what);
  absl::Status status = errors.status(to_string(type), name);
  return {std::move(name), std::move(status)};
}

ReceivedResource parse_unwrapped(ResourceType type,
                                 absl::string_view bytes,
                                 const ParseOptions& options) {
  switch (type) {
    case ResourceType::kListener:
      return parse_listener(bytes);
    case ResourceType::kRouteConfig:
      return parse_route_config(bytes);
    case ResourceType::kCluster:
      return parse_cluster(bytes, options);
    case ResourceType::kEndpoints:
      return parse_endpoints(bytes);
  }
  SIGNALBOX_INVARIANT(false, "a resource is of one of four types");
  return {};
}

// Of two resources with one name neither is used: which one was meant?
void add_resource(ReceivedResource resource,
                  ResourcesReceived& received,
                  absl::flat_hash_map<std::string, std::size_t>& places) {
  const auto [place, is_new] = places.emplace(resource.name, received.resources.size());
  if (is_new) {
    received.resources.push_back(std::move(resource));
    return;
  }
  received.resources[place->second] =
      failed(received.type, resource.name, "must occur once in a response, found more than once");
}

// All errors, as long as they fit into a request; the rest is counted.
std::string nack_detail(const ResourcesReceived& received) {
  std::vector<absl::string_view> errors;
  for (const ReceivedResource& resource : received.resources) {
    if (!resource.resource.ok()) errors.push_back(resource.resource.status().message());
  }
  errors.insert(errors.end(), received.unnamed_errors.begin(), received.unnamed_errors.end());
  std::string detail;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (i > 0) detail += "; ";
    if (detail.size() + errors[i].size() > kMaxNackDetailLength) {
      absl::StrAppend(&detail, "and ", errors.size() - i, " more invalid resources");
      break;
    }
    absl::StrAppend(&detail, errors[i]);
  }
  return detail;
}

}  // namespace

ReceivedResource parse_resource(ResourceType type,
                                absl::string_view type_url,
                                absl::string_view bytes,
                                const ParseOptions& options) {
  ::google::protobuf::Any any;
  std::string wrapper_name;
  const std::string wrapper_url = type_url_of<ResourceWrapper>();
  for (std::size_t depth = 0; type_url == wrapper_url; ++depth) {
    ResourceWrapper wrapper;
    if (depth == kMaxAnyNesting) {
      return failed(type,
                    wrapper_name,
                    absl::StrCat("must not be wrapped more than ", kMaxAnyNesting, " times"));
    }
    if (!decode(bytes, wrapper)) return undecodable(to_string(type), "a Resource", bytes);
    if (!wrapper.name().empty()) wrapper_name = wrapper.name();
    any = std::move(*wrapper.mutable_resource());
    type_url = any.type_url();
    bytes = any.value();
  }
  if (type_url != type_url_of(type)) {
    return failed(
        type,
        wrapper_name,
        absl::StrCat("type_url: must be ", type_url_of(type), ", found ", quoted(type_url)));
  }
  ReceivedResource resource = parse_unwrapped(type, bytes, options);
  if (resource.name.empty() && !resource.resource.ok()) resource.name = wrapper_name;
  return resource;
}

absl::StatusOr<DecodedResponse> decode_response(absl::string_view bytes,
                                                const ParseOptions& options) {
  DiscoveryResponse proto;
  if (!decode(bytes, proto)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server's message must be a "
                     "DiscoveryResponse, found ",
                     bytes.size(),
                     " bytes that are not"));
  }
  const auto type = resource_type_of(proto.type_url());
  if (!type.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a DiscoveryResponse must be of a type that was asked for, found type_url ",
                     quoted(proto.type_url())));
  }
  DecodedResponse response;
  response.nonce = proto.nonce();
  ResourcesReceived& received = response.received;
  received.type = *type;
  received.version = proto.version_info();
  absl::flat_hash_map<std::string, std::size_t> places;
  for (int i = 0; i < proto.resources_size(); ++i) {
    const ::google::protobuf::Any& any = proto.resources(i);
    ReceivedResource resource = parse_resource(*type, any.type_url(), any.value(), options);
    if (resource.name.empty()) {
      received.unnamed_errors.push_back(
          absl::StrCat("resources[", i, "]: ", resource.resource.status().message()));
    } else {
      add_resource(std::move(resource), received, places);
    }
  }
  response.nack_detail = nack_detail(received);
  return response;
}

}  // namespace signalbox::xds
