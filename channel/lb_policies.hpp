// SPDX-License-Identifier: Apache-2.0
//
// lb_policies — the user's own policies, on their way to those who need half of each.
//
//   RuntimeOptions::lb_policies ─▶ [register_lb_policies] ─┬▶ parsers ─▶ xds/parse: NACK
//                                                          └▶ policies ─▶ lb/policy_registry
//
// Here the user's exceptions end that nobody below expects: those of parse. Those of a policy end
// its actor, those of a picker its call.

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

/// INVALID_ARGUMENT names the first policy that cannot be, and why.
absl::StatusOr<RegisteredLbPolicies> register_lb_policies(
    const std::vector<CustomLbPolicy>& policies, metrics::Instruments& instruments);

}  // namespace signalbox::channel
