// SPDX-License-Identifier: Apache-2.0
//
// RetryPolicy of a route or a virtual host.
//
//   xds/parse/route_config, route_action ─▶ [parse_retry_policy] ─▶ ForwardAction::retry
//
// Of retry_on, the five conditions that gRPC has count, the others are ignored; with none left
// there is no policy. Everything but retry_on, num_retries and retry_back_off is ignored.
//
// Source: gRFC A44; A6 (at most five attempts).

#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

#include "messages/route_config.hpp"
#include "signalbox/envoy/config/route/v3/route_components.pb.h"
#include "xds/parse/validation_errors.hpp"

namespace signalbox::xds {

/// More of num_retries counts as so many: five attempts in all (A6).
inline constexpr std::uint32_t kMostRetries = 4;

/// One of the five words of retry_on that gRPC has.
bool is_retry_condition(absl::string_view condition);

/// nullopt: calls are not retried, or an error was added.
std::optional<RetryPolicy> parse_retry_policy(const envoy::config::route::v3::RetryPolicy& proto,
                                              const Field& field);

}  // namespace signalbox::xds
