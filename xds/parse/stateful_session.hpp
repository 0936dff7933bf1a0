// SPDX-License-Identifier: Apache-2.0
//
// The configuration of the filter stateful_session, and what takes its place for a route.
//
//   xds/parse/http_filter ─▶ [parse_stateful_session] ─▶ StatefulSessionFilter
//
//   session_state not set              the filter does nothing                  (A55-8)
//   session_state of another type      an error                                 (A55-7)
//   override: disabled, or nothing     the filter does nothing there            (A55-12)
//
// A cookie's name and path go into headers as they are, so what would break out of one is an error.
//
// Source: gRFC A55, A60; RFC 6265 section 4.1.1 (name, path).

#pragma once

#include <optional>

#include "messages/http_filter.hpp"
#include "xds/parse/extension.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// `extension` is a StatefulSession; `field` its value. nullopt: an error was added.
std::optional<HttpFilterConfig> parse_stateful_session(const Extension& extension,
                                                       const Field& field);

/// As above, for a StatefulSessionPerRoute.
std::optional<HttpFilterConfig> parse_stateful_session_override(const Extension& extension,
                                                                const Field& field);

}  // namespace signalbox::xds
