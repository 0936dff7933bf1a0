// SPDX-License-Identifier: Apache-2.0
//
// plan — computes which endpoints would take a cluster's calls, in both modes (priority and
// tiered), now and under PlanAssumptions ("zone b is down").
//
//   leaves with their endpoints, assumptions ─▶ [make_plan] ─▶ Plan
//
//   priority (A56, A75)  the first leaf with a fit endpoint takes all calls, in its first priority
//                        that has a fit endpoint
//   tiered (ENV)         priority_load.hpp: by the health of all priorities of all leaves
//
// Within a priority the leaf's own policy divides the calls: spread.hpp.
//
// An endpoint is fit when EDS says HEALTHY or UNKNOWN, and it is not assumed to be down. DEGRADED
// endpoints get calls only in tiered mode, when the fit ones do not suffice. UNHEALTHY and TIMEOUT
// endpoints count in the total of their priority, and get calls only in panic. DRAINING endpoints
// neither count nor get calls (ENV-28). If the health of a priority is assumed as a percentage, it
// is not known which endpoints are fit. So its calls are shared among all its endpoints except
// DRAINING ones, as an average.
//
// Pure: computes with numbers, by the rules that the policies follow; no policy runs.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "messages/cluster.hpp"
#include "messages/plan.hpp"

namespace signalbox::lb {

struct PlanLeaf {
  ClusterName name;
  LbConfigPtr lb_policy;   ///< Null: not known; all endpoints get equal shares.
  EndpointsPtr endpoints;  ///< Null: not known.
};

struct PlanInput {
  ClusterName cluster;
  bool is_aggregate = false;
  std::optional<AggregateMode> own_mode;  ///< The mode in the aggregate's metadata; nullopt: none.
  AggregateMode runtime_mode = AggregateMode::kPriority;
  std::vector<PlanLeaf> leaves;  ///< In the aggregate's order. For a leaf cluster: only itself.
  /// The panic threshold in the aggregate's common_lb_config (ENV-31); nullopt: none.
  std::optional<std::uint32_t> own_panic_threshold = std::nullopt;
  LocalityName caller = {};  ///< The client's locality; without a zone: not known.
};

/// Makes the plan. INVALID_ARGUMENT: the assumptions name something unknown, contradict each other
/// or are out of range. The text for an unknown name lists known ones.
absl::StatusOr<Plan> make_plan(const PlanInput& input, const PlanAssumptions& assumptions);

/// Names one of the four answers of a plan: for each mode, now and under the PlanAssumptions.
struct PlanAnswer {
  AggregateMode mode = AggregateMode::kPriority;
  bool then = false;  ///< True: under the PlanAssumptions. False: now.
};

CallShare share_in(const PlannedShares& shares, PlanAnswer answer);

/// The share of calls that get another endpoint, begin to fail, or stop failing, if `to` replaces
/// `from`.
CallShare moved_calls(const Plan& plan, PlanAnswer from, PlanAnswer to);

}  // namespace signalbox::lb
