// SPDX-License-Identifier: Apache-2.0
//
// Parses the RetryPolicy of a route or of a virtual host.
//
//   xds/parse/route_config, route_action ─▶ [parse_retry_policy] ─▶ ForwardAction::retry
//
// Only the five retry_on conditions that gRPC has are used. Without one of them there is no policy.
// Fields other than retry_on, num_retries, retry_back_off and retry_host_predicate are ignored. The
// only predicate used is previous_hosts.
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

/// The greatest number of retries used; a greater num_retries is lowered to it: five attempts (A6).
inline constexpr std::uint32_t kMostRetries = 4;

/// Whether `condition` is one of the five retry_on conditions that gRPC has.
bool is_retry_condition(absl::string_view condition);

/// Returns the policy; nullopt: calls are not retried. If an error was added, the result must not
/// be used.
std::optional<RetryPolicy> parse_retry_policy(const envoy::config::route::v3::RetryPolicy& proto,
                                              const Field& field);

}  // namespace signalbox::xds
