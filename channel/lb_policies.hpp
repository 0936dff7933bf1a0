// SPDX-License-Identifier: Apache-2.0
//
// lb_policies — registers custom policies: their parsers with xds/parse, the policies with lb.
//
//   RuntimeOptions::lb_policies ─▶ [register_lb_policies] ─┬▶ parsers ─▶ xds/parse: NACK
//                                                          └▶ policies ─▶ lb/policy_registry
//
// Exceptions of custom parsers are caught here, because xds expects none; they count as errors. Not
// caught here: an exception of a policy ends the policy's actor, which is restarted; an exception
// of a picker fails the call.

#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "lb/leaf/custom.hpp"
#include "metrics/instruments.hpp"
#include "signalbox/policy.hpp"
#include "xds/parse/parse_options.hpp"

namespace signalbox::channel {

struct RegisteredLbPolicies {
  std::shared_ptr<const xds::CustomPolicyParsers> parsers;
  std::shared_ptr<const lb::CustomPolicies> policies;
};

/// Returns the parsers, and the functions that make the policies. INVALID_ARGUMENT names the first
/// invalid policy, and the reason.
absl::StatusOr<RegisteredLbPolicies> register_lb_policies(
    const std::vector<CustomLbPolicy>& policies, metrics::Instruments& instruments);

}  // namespace signalbox::channel
