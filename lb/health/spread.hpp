// SPDX-License-Identifier: Apache-2.0
//
// spread — how a leaf cluster's own policy shares out the calls of one priority, on average.
//
//   endpoints by locality; which of them take calls ─▶ [spread_calls] ─▶ a share for each endpoint
//
//   wrr_locality               by the weights of localities in which an endpoint takes calls; then,
//                              in each of these localities, as its child does
//   … with zone_aware          localities as zone_split says, in place of their weights
//   round_robin, random        all alike
//   least_request              all alike; with active_request_bias, by the weights of endpoints
//   ring_hash, maglev          by weight (A113); the calls' keys are not known here
//   pick_first                 the first in the list takes all; when shuffled, by weight on average
//   weighted_round_robin       all alike: a plan has no load reports (A58)
//   random_subsetting          as its child does, on average over many clients (A68)
//   in slow start              as without it: a plan does not know when endpoints became READY
//   any other policy           as if all alike: only the policy itself knows how it spreads calls
//
// Shares are integers, in millionths, that sum exactly to the whole (apportion).

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/lb_config.hpp"
#include "messages/plan.hpp"

namespace signalbox::lb {

/// Divides `share` among the endpoints, in the order of the localities. `takes`, in the same order,
/// says which endpoints take calls; if none does, all parts are 0. A null `policy`: equal parts.
/// `caller`: the client's locality, for zone-aware routing.
std::vector<CallShare> spread_calls(const LbConfigPtr& policy,
                                    const std::vector<LocalityPtr>& localities,
                                    const std::vector<bool>& takes,
                                    CallShare share,
                                    const LocalityName& caller = {});

/// Whether calls to a priority in panic fail: the policy, or a policy below, has
/// WrrLocalityConfig::fail_traffic_on_panic. `policy`: the leaf cluster's own, or null.
bool fails_in_panic(const LbConfigPtr& policy);

/// The names of the policy and of the policies below it: "wrr_locality, round_robin".
std::string policy_text(const LbConfigPtr& policy);

/// Why the policy's real shares may differ from those of spread_calls(); empty: no reason is known.
std::string spread_note(const LbConfigPtr& policy);

}  // namespace signalbox::lb
