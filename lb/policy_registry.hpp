// SPDX-License-Identifier: Apache-2.0
//
// policy_registry — makes the policy for a configuration. A composite has a row in
// policy_registry.cpp. A leaf policy has only an include there: its header declares a make_leaf()
// for its configuration.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

/// Makes the policy for `config`. It does nothing before its first ConfigUpdated. Null: `config`
/// names a custom policy that is not registered (PolicyOptions::custom); parsers skip such a
/// policy.
std::unique_ptr<Policy> make_policy(const LbConfig& config, PolicyContext context);

}  // namespace signalbox::lb
