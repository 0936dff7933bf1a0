// SPDX-License-Identifier: Apache-2.0
//
// Parses the configuration of the fault filter, which delays or aborts calls on purpose.
//
//   xds/parse/http_filter ─▶ [parse_fault] ─▶ FaultFilter
//
//   abort  grpc_status, or http_status by gRPC's mapping (200 is UNKNOWN), or from a header
//   delay  fixed_delay, or from a header
//
// The selection of calls by cluster, node or headers is ignored, and so are response rate limits:
// gRPC defers them. An override has the same type as the configuration.
//
// Source: gRFC A33.

#pragma once

#include <optional>

#include "messages/http_filter.hpp"
#include "xds/parse/extension.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// Parses an HTTPFault. `field` is the extension's value. If an error was added, the result is
/// nullopt or must not be used.
std::optional<HttpFilterConfig> parse_fault(const Extension& extension, const Field& field);

}  // namespace signalbox::xds
