// SPDX-License-Identifier: Apache-2.0
//
// The longest time that a call may take, from three settings (gRFC A31, "Timeouts").
//
//   application's own ────────┐
//   grpc_timeout_header_max ──┼▶ [effective_timeout] ─▶ deadline of the call, waiting included
//   max_stream_duration ──────┘
//
// nullopt means "unset" for an argument and "unlimited" for the result. A maximum of 0 means "no
// limit", which differs from unset: a grpc_timeout_header_max of 0 still overrides
// max_stream_duration. 0 has that meaning only in the configuration (route and listener), not as
// the application's timeout.

#pragma once

#include <optional>

#include "messages/ids.hpp"

namespace signalbox::lb {

/// The route's limit if it has one, even 0, else the listener's (A31-22, A31-28).
std::optional<Duration> effective_max_stream_duration(std::optional<Duration> of_route,
                                                      std::optional<Duration> of_listener);

/// The call's timeout: the lesser of `application` (A31-26) and a cap. The cap is `header_max`, or
/// `max_stream_duration` if `header_max` is unset; a cap of 0 is no cap. nullopt: no limit.
std::optional<Duration> effective_timeout(std::optional<Duration> application,
                                          std::optional<Duration> header_max,
                                          std::optional<Duration> max_stream_duration);

}  // namespace signalbox::lb
