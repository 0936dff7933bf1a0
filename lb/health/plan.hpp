// SPDX-License-Identifier: Apache-2.0
//
// plan — which endpoints would take the calls to a cluster, in either mode, under assumptions.
//
//   leaves with their endpoints, assumptions ─▶ [make_plan] ─▶ Plan
//
//   priority (A56, A75)  the first priority of the first leaf with a fit endpoint takes all
//   tiered (ENV)         priority_load.hpp: by the health of all priorities of all leaves
//
// Within a priority the leaf's own policy divides the calls: spread.hpp.
//
// An endpoint is fit when EDS calls it HEALTHY or UNKNOWN and it is not assumed to be down.
// DEGRADED endpoints take the calls that tiered mode leaves to them. UNHEALTHY and TIMEOUT
// endpoints count in the health of their priority, and take calls only in panic. DRAINING endpoints
// neither count nor take calls (ENV-28). A priority with assumed health does not say which of its
// endpoints are fit, so its shares are averages.
//
// Pure: the rules of the data plane are applied to numbers, and no policy runs.

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
  std::vector<PlanLeaf> leaves;  ///< In order. A leaf cluster has one leaf: itself.
  /// The panic threshold in the aggregate's common_lb_config (ENV-31); nullopt: none.
  std::optional<std::uint32_t> own_panic_threshold = std::nullopt;
};

/// INVALID_ARGUMENT when the assumptions name something unknown, contradict each other or are out
/// of range. For an unknown name, the text lists known names.
absl::StatusOr<Plan> make_plan(const PlanInput& input, const PlanAssumptions& assumptions);

/// Names one of a plan's four answers.
struct PlanAnswer {
  AggregateMode mode = AggregateMode::kPriority;
  bool then = false;  ///< True: under the assumptions. False: now.
};

CallShare share_in(const PlannedShares& shares, PlanAnswer answer);

/// The calls that would change their endpoint, begin to fail, or stop failing, from one answer to
/// the other.
CallShare moved_calls(const Plan& plan, PlanAnswer from, PlanAnswer to);

}  // namespace signalbox::lb
