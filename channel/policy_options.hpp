// SPDX-License-Identifier: Apache-2.0
//
// policy_options — options of the application and its environment for all policies.
//
//   RuntimeOptions, environment variables ─▶ [policy_options] ─▶ every policy that is made
//
// GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE=true keeps priorities that are no longer
// configured for fifteen minutes (gRFC A115). GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING=false weighs
// endpoints as before gRFC A113, in the shuffle of pick_first and on the ring of ring_hash. Other
// values have no effect. Both variables are read when a runtime starts.

#pragma once

#include <functional>

#include "lb/policy.hpp"
#include "signalbox/runtime.hpp"

namespace signalbox::channel {

/// `get` behaves as std::getenv.
lb::PolicyOptions policy_options(const RuntimeOptions& options,
                                 const std::function<const char*(const char*)>& get);

}  // namespace signalbox::channel
