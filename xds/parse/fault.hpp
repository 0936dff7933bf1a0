// SPDX-License-Identifier: Apache-2.0
//
// The configuration of the filter fault: which calls are delayed or aborted on purpose.
//
//   xds/parse/http_filter ─▶ [parse_fault] ─▶ FaultFilter
//
//   abort  grpc_status, or http_status by gRPC's mapping (200 is UNKNOWN), or told by a header
//   delay  fixed_delay, or told by a header
//
// Choosing calls by cluster, node or headers, and response rate limits, are ignored: gRPC defers
// them. An override is of the same type.
//
// Source: gRFC A33.

#pragma once

#include <optional>

#include "messages/http_filter.hpp"
#include "xds/parse/extension.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// `extension` is an HTTPFault; `field` its value. nullopt: an error was added.
std::optional<HttpFilterConfig> parse_fault(const Extension& extension, const Field& field);

}  // namespace signalbox::xds
