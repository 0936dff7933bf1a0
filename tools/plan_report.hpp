// SPDX-License-Identifier: Apache-2.0
//
// plan_report — shows a plan as a table for the terminal, and as data.
//
//   Plan, PlanView ─▶ [plan_rows] ─▶ plan_table ─▶ stdout
//                          └──────▶ plan_html (plan_html.hpp)
//   Plan, PlanView ─▶ [plan_json] ─▶ stdout
//
// The data. The names of members and their meanings are stable. Shares are percent of all calls to
// the cluster, with up to four decimals; "priority" and "tiered" are the modes that were asked for:
//
//   cluster, is_aggregate, mode       the mode in which the cluster runs
//   mode_from                         "metadata" (the cluster's), "default", or "leaf" (a leaf
//                                     cluster)
//   panic_threshold                   of tiered mode, in percent
//   panic_threshold_from              "cluster" (its common_lb_config) or "default"
//   assumed   {down: […], health: [{cluster, priority, healthy, degraded}], panic_threshold}
//   failing   {priority: {now, then}, tiered: {now, then}}: calls that find no endpoint
//   moved     {priority, tiered}: the share that the assumptions move to other endpoints, or fail
//   flip      {to, moved}: the other mode, and the share that a change to it would move
//   notes     […]: data that is missing
//   clusters  [{name, lb_policy, note, shares, priorities: [{priority, assumed,
//               health: {now: {healthy, degraded, healthy_hosts, overprovisioning_factor, panic},
//               then: {…}}, shares, localities: [{region,
//               zone, sub_zone, weight, shares, endpoints: [{addresses, health, weight, down,
//               shares}]}]}]}], where shares are {priority: {now, then}, tiered: {now, then}}

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include <nlohmann/json.hpp>

#include "lb/health/plan.hpp"
#include "messages/plan.hpp"

namespace signalbox::tools {

/// The content of a report: the modes side by side, and what the plan assumed about the health and
/// failures of endpoints.
struct PlanView {
  std::vector<AggregateMode> modes = {AggregateMode::kPriority, AggregateMode::kTiered};
  PlanAssumptions assumptions;

  bool has_then() const { return !assumptions.empty(); }
};

absl::string_view mode_name(AggregateMode mode);
AggregateMode other_mode(AggregateMode mode);

/// "33.33": percent, with up to two decimals. "<0.01" for a share that would round to 0.
std::string percent_text(CallShare share);

/// One line of the tree.
struct PlanRow {
  std::size_t depth = 0;  ///< 0: a leaf cluster, …, 3: an endpoint.
  std::string name;
  std::string detail;  ///< May be empty.
  bool has_shares = true;
  PlannedShares shares;
  /// The index of the row's leaf in Plan::leaves; unset for failing calls.
  std::optional<std::size_t> leaf = std::nullopt;
};

/// "north/zone-a", without empty parts at the end; "(no locality)" if all parts are empty.
std::string locality_text(const LocalityName& name);

/// The tree's lines in their order. A locality shows its first `most_endpoints` endpoints, and a
/// row with the number of further endpoints.
std::vector<PlanRow> plan_rows(const Plan& plan, std::size_t most_endpoints);

/// The assumed failures and health: "zone-a is down, of orders/0 50 % are healthy". Empty: the plan
/// assumed neither.
std::string assumption_text(const PlanAssumptions& assumptions);

/// If there are assumptions, one line for each mode: how many calls they move, and how many then
/// fail. Then the mode that an aggregate runs in, its own panic threshold if it has one, and how
/// many calls a change to the other mode would move. A leaf cluster has one line instead: its mode
/// cannot change.
std::vector<std::string> plan_summary(const Plan& plan, const PlanView& view);

std::string plan_table(const Plan& plan, const PlanView& view);
nlohmann::json plan_json(const Plan& plan, const PlanView& view);

}  // namespace signalbox::tools
