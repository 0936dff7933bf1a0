// SPDX-License-Identifier: Apache-2.0
//
// The one rule between our messages and the xDS API's names.
//
//   signalbox.envoy.config.cluster.v3.Cluster               our descriptor and C++ type
//        ▲  │
//        │  ▼
//   type.googleapis.com/envoy.config.cluster.v3.Cluster     in an Any, on the wire or in a file
//
// Nothing else in xds/ puts a type URL together or takes one apart. The type resolver applies the
// rule below protobuf's JSON conversion, so that `@type` is written as the API spells it, at any
// depth; our own spelling (`signalbox.envoy…`) is refused.

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

/// The type URL that an Any holding this message carries.
std::string type_url_of(const ::google::protobuf::Descriptor& descriptor);

template <typename Message>
std::string type_url_of() {
  return type_url_of(*Message::descriptor());
}

/// The type URL of a resource that can be subscribed to, and back; nothing for every other type.
absl::string_view type_url_of(ResourceType type);
std::optional<ResourceType> resource_type_of(absl::string_view type_url);

/// What stands after the last slash: the message's name in the API. The whole text where there is
/// no slash.
absl::string_view api_name(absl::string_view type_url);

/// The message for a type URL: ours if we have one, else any other that is linked in under its own
/// name; nullptr for none.
const ::google::protobuf::Descriptor* find_message(absl::string_view type_url);

/// Resolves the API's type URLs to our messages for protobuf's JSON conversions. Immutable, usable
/// from any thread.
std::unique_ptr<::google::protobuf::util::TypeResolver> make_type_resolver();

}  // namespace signalbox::xds
