// SPDX-License-Identifier: Apache-2.0
#include "xds/record/ads_messages.hpp"

#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/match.h"

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "xds/client/resource_name.hpp"
#include "xds/limits.hpp"
#include "xds/parse/parse_resource.hpp"
#include "xds/type_url.hpp"

namespace signalbox::xds {
namespace {

using envoy::service::discovery::v3::DiscoveryRequest;
using envoy::service::discovery::v3::DiscoveryResponse;

// Requests have the canonical spelling, and a response may have another.
std::string canonical_name(ResourceType type, const ::google::protobuf::Any& any) {
  std::string name = read_name(type, {any.type_url(), any.value()}, Limits{});
  if (!absl::StartsWith(name, "xdstp:")) return name;
  auto parsed = parse_resource_name({type, name});
  return parsed.ok() ? std::move(parsed->canonical) : name;
}

template <typename Message>
bool read_message(absl::string_view bytes, Message& message) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<int>::max());
  return bytes.size() <= kMost &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

std::optional<SeenRequest> read_request(absl::string_view bytes) {
  DiscoveryRequest request;
  if (!read_message(bytes, request)) return std::nullopt;
  const auto type = resource_type_of(request.type_url());
  if (!type) return std::nullopt;
  return SeenRequest{*type,
                     request.response_nonce(),
                     request.has_error_detail(),
                     {request.resource_names().begin(), request.resource_names().end()}};
}

std::optional<SeenResponse> read_response(absl::string_view bytes) {
  DiscoveryResponse response;
  if (!read_message(bytes, response)) return std::nullopt;
  const auto type = resource_type_of(response.type_url());
  if (!type) return std::nullopt;
  SeenResponse seen{*type, response.version_info(), response.nonce(), {}};
  for (const auto& any : response.resources())
    seen.resources.insert_or_assign(canonical_name(*type, any), any.SerializeAsString());
  return seen;
}

std::string encode_response(const SeenResponse& response) {
  DiscoveryResponse message;
  message.set_type_url(std::string(type_url_of(response.type)));
  message.set_version_info(response.version);
  message.set_nonce(response.nonce);
  for (const auto& [name, bytes] : response.resources)
    message.add_resources()->ParseFromString(bytes);
  return message.SerializeAsString();
}

}  // namespace signalbox::xds
