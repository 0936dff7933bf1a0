// SPDX-License-Identifier: Apache-2.0
//
// plan — who would take the calls to a cluster, in either mode, if this and that were so.
//
//   leaves with their endpoints, assumptions ─▶ [make_plan] ─▶ Plan
//
//   priority (A56, A75)  the first priority of the first leaf with anybody who is fit takes all
//   tiered (ENV)         priority_load.hpp: by the health of all priorities of all leaves
//
// Below the priority the leaf's own policy shares calls out: spread.hpp.
//
// Who is fit. Endpoints that EDS calls HEALTHY or UNKNOWN and that are not assumed to be down; for
// what tiered mode leaves to them, those that EDS calls DEGRADED. UNHEALTHY and
// TIMEOUT ones count in the health of their priority, and take calls in panic only; DRAINING ones
// neither count nor take calls (ENV-28). Where a priority's health is assumed, which of its
// endpoints are fit is not said: the shares are those that they have on average.
//
// Pure: rules of the data plane applied to numbers; no policy runs.

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
  LbConfigPtr lb_policy;   ///< Null: none is known, and endpoints take calls alike.
  EndpointsPtr endpoints;  ///< Null: none are known.
};

struct PlanInput {
  ClusterName cluster;
  bool is_aggregate = false;
  std::optional<AggregateMode> own_mode;  ///< The aggregate's, by its metadata.
  AggregateMode runtime_mode = AggregateMode::kPriority;
  std::vector<PlanLeaf> leaves;  ///< In order; of a leaf itself.
  /// The aggregate's, by its common_lb_config (ENV-31).
  std::optional<std::uint32_t> own_panic_threshold = std::nullopt;
};

/// INVALID_ARGUMENT where the assumptions name what is not there, contradict each other or are out
/// of range: the text says what there is.
absl::StatusOr<Plan> make_plan(const PlanInput& input, const PlanAssumptions& assumptions);

/// One of a plan's four answers.
struct PlanAnswer {
  AggregateMode mode = AggregateMode::kPriority;
  bool then = false;  ///< Else now.
};

CallShare share_in(const PlannedShares& shares, PlanAnswer answer);

/// The calls that another endpoint would take, or that would fail, or fail no more, from one answer
/// to the other.
CallShare moved_calls(const Plan& plan, PlanAnswer from, PlanAnswer to);

}  // namespace signalbox::lb
