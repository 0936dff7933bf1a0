// SPDX-License-Identifier: Apache-2.0
//
// policy_options — what the environment says about policies.
//
//   environment ─▶ [policy_options_from] ─▶ PolicyOptions, the rest at its defaults

#pragma once

#include "absl/functional/function_ref.h"

#include "lb/policy.hpp"

namespace signalbox::lb {

/// `get` is as std::getenv. GRPC_EXPERIMENTAL_PF_WEIGHTED_SHUFFLING=false: endpoints' weights do
/// not count where pick_first shuffles (A113).
PolicyOptions policy_options_from(absl::FunctionRef<const char*(const char* name)> get);

}  // namespace signalbox::lb
