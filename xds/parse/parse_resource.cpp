// SPDX-License-Identifier: Apache-2.0
#include "xds/parse/parse_resource.hpp"

#include <memory>
#include <string>
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
#include "xds/utf8.hpp"

namespace signalbox::xds {
namespace {

using envoy::service::discovery::v3::DiscoveryResponse;
using ResourceWrapper = envoy::service::discovery::v3::Resource;

ReceivedResource failed(ResourceType type, std::string name, absl::string_view what) {
  const ParseOptions options;
  ValidationErrors errors(options);
  errors.top().add(what);
  return errors.refuse(to_string(type), std::move(name));
}

ReceivedResource over_limit(ResourceType type,
                            std::string name,
                            absl::string_view limit,
                            absl::string_view what) {
  const ParseOptions options;
  ValidationErrors errors(options);
  errors.top().add_over_limit(limit, what);
  return errors.refuse(to_string(type), std::move(name));
}

ReceivedResource parse_unwrapped(ResourceType type,
                                 absl::string_view bytes,
                                 const ParseOptions& options) {
  switch (type) {
    case ResourceType::kListener:
      return parse_listener(bytes, options);
    case ResourceType::kRouteConfig:
      return parse_route_config(bytes, options);
    case ResourceType::kCluster:
      return parse_cluster(bytes, options);
    case ResourceType::kEndpoints:
      return parse_endpoints(bytes, options);
  }
  SIGNALBOX_INVARIANT(false, "a resource is of one of four types");
  return {};
}

void count(const Rejection& rejection, ResourcesReceived& received) {
  ++received.rejected.at(static_cast<std::size_t>(rejection.reason));
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
  ReceivedResource& kept = received.resources[place->second];
  const bool had_been_counted = kept.rejection.has_value() || resource.rejection.has_value();
  kept =
      failed(received.type, resource.name, "must occur once in a response, found more than once");
  if (!had_been_counted) count(*kept.rejection, received);
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

// One without a name, or that says all is well, says nothing.
std::vector<ResourceError> resource_errors(const DiscoveryResponse& response) {
  std::vector<ResourceError> errors;
  for (const auto& error : response.resource_errors()) {
    const auto code = static_cast<absl::StatusCode>(error.error_detail().code());
    absl::Status status(code, utf8_prefix(error.error_detail().message(), kMaxResourceErrorLength));
    if (error.resource_name().name().empty() || status.ok()) continue;
    errors.push_back({error.resource_name().name(), std::move(status)});
  }
  return errors;
}

}  // namespace

ReceivedResource parse_resource(ResourceType type,
                                absl::string_view type_url,
                                absl::string_view bytes,
                                const ParseOptions& options,
                                const KnownResources* known) {
  ::google::protobuf::Any any;
  std::string wrapper_name;
  const std::string wrapper_url = type_url_of<ResourceWrapper>();
  for (std::size_t depth = 0; type_url == wrapper_url; ++depth) {
    ResourceWrapper wrapper;
    if (depth == options.limits.max_any_nesting) {
      return over_limit(
          type,
          wrapper_name,
          "max_any_nesting",
          absl::StrCat("must not be wrapped more than ", options.limits.max_any_nesting, " times"));
    }
    if (!decode(bytes, wrapper))
      return undecodable(to_string(type), "a Resource", bytes, wrapper, wrapper.name());
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
  const ReceivedResource* before = known == nullptr ? nullptr : known->find(type, bytes);
  if (before != nullptr) return *before;
  ReceivedResource resource = parse_unwrapped(type, bytes, options);
  if (resource.resource.ok()) {
    resource.bytes = std::make_shared<const std::string>(bytes);
  } else if (resource.name.empty() && !wrapper_name.empty()) {
    resource.name = wrapper_name;
    resource.resource = absl::InvalidArgumentError(absl::StrCat(
        "Resource ", quoted(wrapper_name), ": ", resource.resource.status().message()));
  }
  return resource;
}

absl::StatusOr<DecodedResponse> decode_response(absl::string_view bytes,
                                                const ParseOptions& options,
                                                KnownResources* known) {
  const Limits& limits = options.limits;
  if (bytes.size() > limits.max_message_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the server's message must not be longer than ",
                     limits.max_message_bytes,
                     " bytes, found ",
                     bytes.size(),
                     " (limit max_message_bytes)"));
  }
  DiscoveryResponse proto;
  if (!decode(bytes, proto)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server's message ",
                     why_undecodable("a DiscoveryResponse", bytes, *proto.GetDescriptor())));
  }
  const auto type = resource_type_of(proto.type_url());
  if (!type.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat("a DiscoveryResponse must be of a type that was asked for, found type_url ",
                     quoted(proto.type_url())));
  }
  DecodedResponse response;
  response.nonce = proto.nonce();
  ResourcesReceived& received = response.received;
  received.type = *type;
  received.version = proto.version_info();
  if (known != nullptr) known->parse_with(options);
  absl::flat_hash_map<std::string, std::size_t> places;
  for (int i = 0; i < proto.resources_size(); ++i) {
    const ::google::protobuf::Any& any = proto.resources(i);
    ReceivedResource resource = parse_resource(*type, any.type_url(), any.value(), options, known);
    // What is beyond is refused by its name: a cluster that we have is kept, not gone.
    if (*type == ResourceType::kCluster && static_cast<std::size_t>(i) >= limits.max_clusters) {
      resource = over_limit(*type,
                            std::move(resource.name),
                            "max_clusters",
                            absl::StrCat("a response must have at most ",
                                         limits.max_clusters,
                                         " clusters, found ",
                                         proto.resources_size()));
    }
    if (resource.rejection.has_value()) count(*resource.rejection, received);
    if (resource.name.empty()) {
      received.unnamed_errors.push_back(
          absl::StrCat("resources[", i, "]: ", resource.resource.status().message()));
    } else {
      add_resource(std::move(resource), received, places);
    }
  }
  received.resource_errors = resource_errors(proto);
  if (known != nullptr) known->keep(received);
  response.nack_detail = nack_detail(received);
  return response;
}

}  // namespace signalbox::xds
