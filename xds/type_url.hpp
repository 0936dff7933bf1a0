// SPDX-License-Identifier: Apache-2.0
//
// type_url — converts between the names of signalbox's messages and the names of the xDS API.
//
//   signalbox.envoy.config.cluster.v3.Cluster               signalbox's descriptor and C++ type
//        ▲  │
//        │  ▼
//   type.googleapis.com/envoy.config.cluster.v3.Cluster     in an Any, on the wire or in a file
//
// Files of xds/ build and split type URLs by these functions. The type resolver applies
// this conversion inside protobuf's JSON conversion, so that `@type` has the API's spelling at any
// depth. The spelling with the prefix (`signalbox.envoy…`) is refused.

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/type_resolver.h>

#include "messages/resource.hpp"

namespace signalbox::xds {

inline constexpr absl::string_view kListenerTypeUrl =
    "type.googleapis.com/envoy.config.listener.v3.Listener";
inline constexpr absl::string_view kRouteConfigurationTypeUrl =
    "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
inline constexpr absl::string_view kClusterTypeUrl =
    "type.googleapis.com/envoy.config.cluster.v3.Cluster";
inline constexpr absl::string_view kClusterLoadAssignmentTypeUrl =
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";

/// The type URL of an Any that holds this message.
std::string type_url_of(const ::google::protobuf::Descriptor& descriptor);

template <typename Message>
std::string type_url_of() {
  return type_url_of(*Message::descriptor());
}

/// Conversions for resource types that can be subscribed to; nullopt for any other type URL.
absl::string_view type_url_of(ResourceType type);
std::optional<ResourceType> resource_type_of(absl::string_view type_url);

/// The message's name in the API: the text after the last slash, or the whole text if there is no
/// slash.
absl::string_view api_name(absl::string_view type_url);

/// The message for a type URL: signalbox's own message if there is one, else a linked message with
/// the API's full name; nullptr if there is neither.
const ::google::protobuf::Descriptor* find_message(absl::string_view type_url);

/// Resolves the API's type URLs to signalbox's messages for protobuf's JSON conversions. Immutable,
/// usable from any thread.
std::unique_ptr<::google::protobuf::util::TypeResolver> make_type_resolver();

}  // namespace signalbox::xds
