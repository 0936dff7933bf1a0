// SPDX-License-Identifier: Apache-2.0
//
// How a plan is shown: as a table for the terminal, and as data.
//
//   Plan, PlanView ─▶ [plan_rows] ─▶ plan_table ─▶ stdout
//                          └──────▶ plan_html (plan_html.hpp)
//   Plan, PlanView ─▶ [plan_json] ─▶ stdout
//
// The data, whose names and meanings stay (shares are percent of all calls to the cluster, with up
// to four decimals; "priority" and "tiered" are the modes that were asked for):
//
//   cluster, is_aggregate, mode       what it runs in, and
//   mode_from                         "metadata" (its own), "default" or, of a leaf, "leaf"
//   panic_threshold                   of tiered mode, in percent, and
//   panic_threshold_from              "cluster" (its common_lb_config) or "default"
//   assumed   {down: […], health: [{cluster, priority, healthy, degraded}], panic_threshold}
//   failing   {priority: {now, then}, tiered: {now, then}}: calls that find nobody
//   moved     {priority, tiered}: from now to then so much goes to other endpoints, or fails
//   flip      {to, moved}: then, if the cluster ran in the other mode
//   notes     […]: what is missing
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

/// What of a plan is shown.
struct PlanView {
  std::vector<AggregateMode> modes = {AggregateMode::kPriority, AggregateMode::kTiered};
  PlanAssumptions assumptions;

  bool has_then() const { return !assumptions.empty(); }
};

absl::string_view mode_word(AggregateMode mode);
AggregateMode other_mode(AggregateMode mode);

/// "33.33": percent, with two decimals where it needs them. "<0.01" for what would be nothing.
std::string percent_text(CallShare share);

/// A line of the tree, in its order.
struct PlanRow {
  std::size_t depth = 0;  ///< 0: a leaf cluster, …, 3: an endpoint.
  std::string name;
  std::string detail;  ///< May be empty.
  bool has_shares = true;
  PlannedShares shares;
  std::optional<std::size_t> leaf =
      std::nullopt;  ///< Its place in Plan::leaves; failing calls: none.
};

/// "north/zone-a", without empty parts at the end.
std::string locality_text(const LocalityName& name);

/// Of a locality's endpoints the first so many, and a row that says how many more there are.
std::vector<PlanRow> plan_rows(const Plan& plan, std::size_t most_endpoints);

/// What is assumed: "zone-a is down, orders/0 has 50 % healthy endpoints". Empty: nothing is.
std::string assumption_text(const PlanAssumptions& assumptions);

/// How the calls move: from now to then in each mode, and by flipping the mode. A line each.
std::vector<std::string> plan_summary(const Plan& plan, const PlanView& view);

std::string plan_table(const Plan& plan, const PlanView& view);
nlohmann::json plan_json(const Plan& plan, const PlanView& view);

}  // namespace signalbox::tools
