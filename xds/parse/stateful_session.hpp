// SPDX-License-Identifier: Apache-2.0
//
// Parses the configuration of the filter stateful_session, and its overrides.
//
//   xds/parse/http_filter ─▶ [parse_stateful_session] ─▶ StatefulSessionFilter
//
//   session_state not set              the filter does nothing                  (A55-8)
//   session_state of another type      an error                                 (A55-7)
//   override: disabled, or nothing     the filter does nothing there            (A55-12)
//
// A cookie's name and path are written into headers unescaped, so characters that could end the
// cookie or the header are errors.
//
// Source: gRFC A55, A60; RFC 6265 section 4.1.1 (name, path).

#pragma once

#include <optional>

#include "messages/http_filter.hpp"
#include "xds/parse/extension.hpp"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// Parses a StatefulSession. `field` is the extension's value. If an error was added, the result is
/// nullopt or must not be used.
std::optional<HttpFilterConfig> parse_stateful_session(const Extension& extension,
                                                       const Field& field);

/// Parses an override. `extension` is a StatefulSessionPerRoute. If an error was added, the result
/// is nullopt or must not be used.
std::optional<HttpFilterConfig> parse_stateful_session_override(const Extension& extension,
                                                                const Field& field);

}  // namespace signalbox::xds
