// SPDX-License-Identifier: Apache-2.0
//
// policy_options — what an application and its environment set for all policies.
//
//   RuntimeOptions, environment variables ─▶ [policy_options] ─▶ every policy that is born
//
// GRPC_EXPERIMENTAL_ENABLE_PRIORITY_LB_CHILD_POLICY_CACHE=true keeps priorities that are no longer
// configured for fifteen minutes (gRFC A115); any other value does not.
// GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING=false has endpoints weighed as before gRFC A113, where
// pick_first shuffles and on the ring of ring_hash; any other value does not. Both are asked when
// a runtime starts.

#pragma once

#include <functional>

#include "lb/policy.hpp"
#include "signalbox/runtime.hpp"

namespace signalbox::channel {

/// `get` is as std::getenv.
lb::PolicyOptions policy_options(const RuntimeOptions& options,
                                 const std::function<const char*(const char*)>& get);

}  // namespace signalbox::channel
