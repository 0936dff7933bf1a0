// SPDX-License-Identifier: Apache-2.0
//
// HTTP filters: the chain of a listener, and what virtual hosts, routes and weighted clusters
// override in it.
//
//   xds/parse/listener ─▶ [http_filter] ─▶ Listener::filters
//   xds/parse/route_config ─▶ [http_filter] ─▶ (validated only: no known filter has overrides)
//
// A new filter is one row of the registry in the .cpp.
//
// Source: gRFC A39.

#pragma once

#include <string>
#include <vector>

#include <google/protobuf/any.pb.h>
#include <google/protobuf/map.h>
#include <google/protobuf/repeated_field.h>

#include "messages/listener.hpp"
#include "signalbox/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// The chain, in order, without the optional filters that we do not know. `parent` is the message
/// whose field `http_filters` this is.
std::vector<HttpFilter> parse_http_filters(
    const ::google::protobuf::RepeatedPtrField<
        envoy::extensions::filters::network::http_connection_manager::v3::HttpFilter>& protos,
    const Field& parent);

/// `parent` is the message whose field `typed_per_filter_config` this is. A key that names no
/// filter of the listener is no error (A39).
void validate_filter_overrides(
    const ::google::protobuf::Map<std::string, ::google::protobuf::Any>& overrides,
    const Field& parent);

}  // namespace signalbox::xds
