// SPDX-License-Identifier: Apache-2.0
//
// policy_options — the options of all policies, from the application and its environment.
//
//   RuntimeOptions, environment variables ─▶ [policy_options] ─▶ every policy that is made
//
// With GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE=true, the policy of a priority is
// kept for fifteen minutes after the priority has left the configuration (gRFC A115). With
// GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING=false, the shuffle of pick_first, the ring of ring_hash
// and the table of maglev use the weights of endpoints as before gRFC A113. Other values have no
// effect. Both variables are read when a runtime starts.

#pragma once

#include <functional>

#include "lb/policy.hpp"
#include "signalbox/runtime.hpp"

namespace signalbox::channel {

/// `get` returns an environment variable, as std::getenv does.
lb::PolicyOptions policy_options(const RuntimeOptions& options,
                                 const std::function<const char*(const char*)>& get);

}  // namespace signalbox::channel
