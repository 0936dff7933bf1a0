// SPDX-License-Identifier: Apache-2.0
//
// spread — how a leaf cluster's own policy shares out the calls of one priority, on average.
//
//   localities ▷ endpoints, who takes calls ─▶ [spread_calls] ─▶ a share for each endpoint
//
//   wrr_locality               localities by their weights, but for those where nobody takes any
//   round_robin, least_request all alike
//   ring_hash                  by weight (A113): what the keys make of it is not known
//   pick_first                 the first in order takes all; shuffled, each client has its own
//   anything else              as if all alike: only the policy knows
//
// Whole parts of a million: what rounding leaves goes to those that lost most by it, the first of
// equals. So shares sum to what was to be shared, exactly.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "messages/lb_config.hpp"
#include "messages/plan.hpp"

namespace signalbox::lb {

/// `share` by weight. All 0 where the weights are.
std::vector<CallShare> apportion(CallShare share, std::span<const std::uint64_t> weights);

/// For each endpoint, in the order of the localities, its part of `share`. `takes`: who takes
/// calls, in the same order. All 0 where nobody does. `policy` may be null: all alike.
std::vector<CallShare> spread_calls(const LbConfigPtr& policy,
                                    const std::vector<LocalityPtr>& localities,
                                    const std::vector<bool>& takes,
                                    CallShare share);

/// The policy and those below it: "wrr_locality, round_robin".
std::string policy_words(const LbConfigPtr& policy);

/// What is to be known of such shares; empty: they are what is to be expected.
std::string spread_note(const LbConfigPtr& policy);

}  // namespace signalbox::lb
