// SPDX-License-Identifier: Apache-2.0
//
// policy_registry — makes the policy for a configuration: one row per composite, and one
// include per leaf: its header has make_leaf for its configuration.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

/// Makes the policy for `config`. The policy still needs its first ConfigUpdated. Null when
/// `config` names a custom policy that is not registered (PolicyOptions::custom). Parsers leave
/// such a policy out.
std::unique_ptr<Policy> make_policy(const LbConfig& config, PolicyContext context);

}  // namespace signalbox::lb
