// SPDX-License-Identifier: Apache-2.0
//
// HTTP filters: the chain of a listener, and its overrides by virtual hosts, routes and weighted
// clusters.
//
//   xds/parse/listener ─────▶ [parse_http_filters] ────▶ Listener::filters
//   xds/parse/route_config ─▶ [parse_filter_overrides] ─▶ filter_overrides of host, route, cluster
//
// A new filter needs one row of the registry in the .cpp, and a name in ParseOptions::http_filters
// once the runtime supports it. Filters that the user registered are in
// ParseOptions::custom_http_filters.
//
// Source: gRFC A39.

#pragma once

#include <string>
#include <vector>

#include <google/protobuf/any.pb.h>
#include <google/protobuf/map.h>
#include <google/protobuf/repeated_field.h>

#include "messages/http_filter.hpp"
#include "signalbox/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// The chain, as the listener lists it. Optional filters that are unknown or have no configuration
/// are left out. `parent` is the message that has the field `http_filters`.
std::vector<HttpFilter> parse_http_filters(
    const ::google::protobuf::RepeatedPtrField<
        envoy::extensions::filters::network::http_connection_manager::v3::HttpFilter>& protos,
    const Field& parent);

/// `parent` is the message that has the field `typed_per_filter_config`. A key that names no filter
/// of the listener is no error (A39).
FilterOverrides parse_filter_overrides(
    const ::google::protobuf::Map<std::string, ::google::protobuf::Any>& overrides,
    const Field& parent);

}  // namespace signalbox::xds
