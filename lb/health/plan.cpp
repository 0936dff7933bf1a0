// SPDX-License-Identifier: Apache-2.0
#include "lb/health/plan.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "lb/health/host_count.hpp"
#include "lb/health/priority_load.hpp"
#include "lb/health/spread.hpp"

namespace signalbox::lb {
namespace {

constexpr CallShare kPercent = kAllCalls / 100;
constexpr std::size_t kMostKnownNames = 20;

constexpr std::array kAnswers{PlanAnswer{AggregateMode::kPriority, false},
                              PlanAnswer{AggregateMode::kPriority, true},
                              PlanAnswer{AggregateMode::kTiered, false},
                              PlanAnswer{AggregateMode::kTiered, true}};

// The health of an endpoint in EDS, as plans see it. kUnfit: UNHEALTHY, TIMEOUT or DRAINING.
enum class Fitness : std::uint8_t { kHealthy, kDegraded, kUnfit };

struct Host {
  const Endpoint* endpoint = nullptr;
  Fitness fitness = Fitness::kUnfit;
  std::size_t locality = 0;  // The index in PlannedPriority::localities.
  std::size_t place = 0;     // The index in that PlannedLocality::endpoints.
  bool down = false;
};

// One priority of one leaf. The rows of all leaves form one list, leaf by leaf (ENV-5).
struct Row {
  const PlanLeaf* leaf = nullptr;
  std::size_t leaf_index = 0;
  std::size_t priority = 0;
  std::vector<Host> hosts;
  const AssumedHealth* assumed = nullptr;
};

Fitness fitness_of(HealthStatus health) {
  if (health == HealthStatus::kHealthy || health == HealthStatus::kUnknown)
    return Fitness::kHealthy;
  return health == HealthStatus::kDegraded ? Fitness::kDegraded : Fitness::kUnfit;
}

CallShare& share_in(PlannedShares& shares, PlanAnswer answer) {
  PlannedShare& mode = answer.mode == AggregateMode::kPriority ? shares.priority : shares.tiered;
  return answer.then ? mode.then : mode.now;
}

// --- the plan's tree, and the rows beside it -------------------------------

void add_hosts(const std::vector<LocalityPtr>& localities, PlannedPriority& planned, Row& row) {
  for (const LocalityPtr& from : localities) {
    auto at = std::ranges::find(planned.localities, from->name, &PlannedLocality::name);
    if (at == planned.localities.end()) {
      planned.localities.push_back({from->name, from->weight, {}, {}});
      at = std::prev(planned.localities.end());
    }
    const auto locality = static_cast<std::size_t>(at - planned.localities.begin());
    for (const Endpoint& endpoint : from->endpoints) {
      row.hosts.push_back(
          {&endpoint, fitness_of(endpoint.health), locality, at->endpoints.size(), false});
      at->endpoints.push_back({endpoint.addresses, endpoint.health, endpoint.weight, false, {}});
    }
  }
}

std::vector<Row> lay_out(const PlanInput& input, Plan& plan) {
  std::vector<Row> rows;
  for (const PlanLeaf& leaf : input.leaves) {
    PlannedLeaf& planned = plan.leaves.emplace_back();
    planned.name = leaf.name;
    planned.lb_policy = policy_text(leaf.lb_policy);
    planned.note = spread_note(leaf.lb_policy);
    if (leaf.endpoints == nullptr) continue;
    for (const Priority& priority : leaf.endpoints->priorities) {
      Row row{&leaf, plan.leaves.size() - 1, planned.priorities.size(), {}, nullptr};
      PlannedPriority& at = planned.priorities.emplace_back();
      for (const auto* localities : priority.lists())
        add_hosts(*localities, at, row);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

PlannedPriority& planned_of(Plan& plan, const Row& row) {
  return plan.leaves[row.leaf_index].priorities[row.priority];
}

// --- assumptions -----------------------------------------------------------

std::string name_of(const Row& row) {
  return absl::StrCat(row.leaf->name.str(), "/", row.priority);
}

// Known names, for an error message; at most kMostKnownNames of them.
std::string listed(const std::set<std::string>& names) {
  if (names.empty()) return "none";
  const auto end = std::next(names.begin(),
                             static_cast<std::ptrdiff_t>(std::min(names.size(), kMostKnownNames)));
  const std::string more = names.size() > kMostKnownNames
                               ? absl::StrCat(" and ", names.size() - kMostKnownNames, " more")
                               : "";
  return absl::StrCat(absl::StrJoin(names.begin(), end, ", "), more);
}

absl::Status refuse(const AssumedHealth& health, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("health of ", health.leaf.str(), "/", health.priority, ": ", why));
}

absl::Status assume(const AssumedHealth& health, std::vector<Row>& rows, Plan& plan) {
  if (health.healthy_percent > 100 || health.degraded_percent > 100 ||
      health.healthy_percent + health.degraded_percent > 100) {
    return refuse(health,
                  absl::StrCat("healthy and degraded endpoints are 0 to 100 percent together, "
                               "found ",
                               health.healthy_percent,
                               " and ",
                               health.degraded_percent));
  }
  const auto found = std::ranges::find_if(rows, [&](const Row& row) {
    return row.leaf->name == health.leaf && row.priority == health.priority;
  });
  if (found == rows.end() || found->hosts.empty()) {
    std::set<std::string> names;
    for (const Row& row : rows) {
      if (!row.hosts.empty()) names.insert(name_of(row));
    }
    return refuse(
        health,
        absl::StrCat("there is no such priority with endpoints; there is: ", listed(names)));
  }
  if (found->assumed != nullptr) return refuse(health, "is assumed twice");
  found->assumed = &health;
  planned_of(plan, *found).assumed = true;
  return absl::OkStatus();
}

// The ways to name a locality: "zone", "region/zone", "region/zone/sub_zone".
std::vector<std::string> names_of(const LocalityName& name) {
  std::vector<std::string> names;
  if (name.zone.empty()) return names;
  names.push_back(name.zone);
  if (!name.region.empty()) names.push_back(absl::StrCat(name.region, "/", name.zone));
  if (!name.region.empty() && !name.sub_zone.empty())
    names.push_back(absl::StrCat(name.region, "/", name.zone, "/", name.sub_zone));
  return names;
}

bool means(const std::string& text, const LocalityName& locality, const Endpoint& endpoint) {
  const auto is_text = [&](const Address& address) { return address.str() == text; };
  return std::ranges::count(names_of(locality), text) != 0 ||
         std::ranges::any_of(endpoint.addresses, is_text);
}

absl::Status refuse_down(const std::string& text, const Plan& plan) {
  std::set<std::string> zones;
  std::set<std::string> endpoints;
  for (const PlannedLeaf& leaf : plan.leaves) {
    for (const PlannedPriority& priority : leaf.priorities) {
      for (const PlannedLocality& locality : priority.localities) {
        const auto names = names_of(locality.name);
        zones.insert(names.begin(), names.end());
        for (const PlannedEndpoint& endpoint : locality.endpoints)
          endpoints.insert(endpoint.addresses.front().str());
      }
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("down: there is no zone or endpoint '",
                                                 text,
                                                 "'; zones: ",
                                                 listed(zones),
                                                 "; endpoints: ",
                                                 listed(endpoints)));
}

absl::Status take_down(const std::string& text, std::vector<Row>& rows, Plan& plan) {
  bool found = false;
  for (Row& row : rows) {
    for (Host& host : row.hosts) {
      PlannedLocality& locality = planned_of(plan, row).localities[host.locality];
      if (!means(text, locality.name, *host.endpoint)) continue;
      if (row.assumed != nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("down: '",
                         text,
                         "' has endpoints of ",
                         name_of(row),
                         ", of which the health is assumed as a whole: leave one of the two out"));
      }
      found = true;
      host.down = true;
      locality.endpoints[host.place].down = true;
    }
  }
  return found ? absl::OkStatus() : refuse_down(text, plan);
}

absl::Status assume_all(const PlanAssumptions& assumptions, std::vector<Row>& rows, Plan& plan) {
  if (assumptions.panic_threshold > 100) {
    return absl::InvalidArgumentError(absl::StrCat(
        "panic threshold: a percentage is 0 to 100, found ", assumptions.panic_threshold));
  }
  for (const AssumedHealth& health : assumptions.health) {
    if (auto status = assume(health, rows, plan); !status.ok()) return status;
  }
  for (const std::string& text : assumptions.down) {
    if (auto status = take_down(text, rows, plan); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// --- shares ----------------------------------------------------------------

// The health of a priority: as it is now, or, with `then`, under the PlanAssumptions.
PriorityHealth health_of(const Row& row, bool then) {
  PriorityHealth health;
  health.overprovisioning_factor = row.leaf->endpoints->overprovisioning_percent;
  if (then && row.assumed != nullptr) {
    health.healthy = row.assumed->healthy_percent;
    health.degraded = row.assumed->degraded_percent;
    health.total = 100;
    return health;
  }
  const bool is_weighted = row.leaf->endpoints->weighted_priority_health;
  HostNumbers numbers;
  for (const Host& host : row.hosts) {
    if (is_draining(*host.endpoint)) continue;  // DRAINING hosts do not count (ENV-28).
    const std::uint64_t counts = is_weighted ? host.endpoint->weight : 1;
    health.total += counts;
    ++numbers.total;
    if (then && host.down) continue;
    if (host.fitness == Fitness::kHealthy) health.healthy += counts;
    if (host.fitness == Fitness::kDegraded) health.degraded += counts;
    if (host.fitness != Fitness::kUnfit) ++numbers.fit;
  }
  if (is_weighted) health.numbers = numbers;
  return health;
}

// Divides `share` among the endpoints for which `is_meant` holds, as the leaf's policy would. In an
// answer under PlanAssumptions, endpoints in PlanAssumptions::down get nothing.
void give(const Row& row,
          absl::FunctionRef<bool(const Host&)> is_meant,
          CallShare share,
          PlanAnswer answer,
          Plan& plan) {
  PlannedPriority& planned = planned_of(plan, row);
  std::vector<Locality> localities;
  localities.reserve(planned.localities.size());
  for (const PlannedLocality& locality : planned.localities)
    localities.push_back({locality.name, locality.weight, {}});
  std::vector<std::vector<const Host*>> meant(localities.size());
  for (const Host& host : row.hosts) {
    if (!is_meant(host)) continue;
    localities[host.locality].endpoints.push_back(*host.endpoint);
    meant[host.locality].push_back(&host);
  }
  std::vector<LocalityPtr> given;
  std::vector<const Host*> hosts;
  std::vector<bool> takes;
  for (std::size_t i = 0; i < localities.size(); ++i) {
    given.push_back(std::make_shared<const Locality>(std::move(localities[i])));
    for (const Host* host : meant[i]) {
      hosts.push_back(host);
      takes.push_back(!answer.then || !host->down);
    }
  }
  const auto parts = spread_calls(row.leaf->lb_policy, given, takes, share, plan.caller);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    PlannedLocality& locality = planned.localities[hosts[i]->locality];
    share_in(locality.endpoints[hosts[i]->place].shares, answer) += parts[i];
  }
}

void give_load(const Row& row, const PriorityLoad& load, PlanAnswer answer, Plan& plan) {
  const bool is_assumed = answer.then && row.assumed != nullptr;
  const auto give_to = [&](std::uint32_t percent, absl::FunctionRef<bool(const Host&)> is_meant) {
    if (percent > 0) give(row, is_meant, percent * kPercent, answer, plan);
  };
  if (load.panic && fails_in_panic(row.leaf->lb_policy)) return;
  if (is_assumed || load.panic) {
    return give_to(load.sum(), [](const Host& host) { return !is_draining(*host.endpoint); });
  }
  give_to(load.healthy, [](const Host& host) { return host.fitness == Fitness::kHealthy; });
  give_to(load.degraded, [](const Host& host) { return host.fitness == Fitness::kDegraded; });
}

// A56, A75: all calls go to the first priority with a healthy endpoint.
std::vector<PriorityLoad> first_takes_all(const std::vector<PriorityHealth>& healths) {
  std::vector<PriorityLoad> loads(healths.size());
  const auto first = std::ranges::find_if(
      healths, [](const PriorityHealth& health) { return health.healthy > 0; });
  if (first != healths.end())
    loads[static_cast<std::size_t>(first - healths.begin())].healthy = 100;
  return loads;
}

PlannedHealth scores_of(const PriorityHealth& health, const PriorityLoad& load) {
  return {
      health_score(health.healthy, health.total, health.overprovisioning_factor),
      health_score(health.degraded, health.total, health.overprovisioning_factor),
      health.total == 0 ? 0 : static_cast<std::uint32_t>(health.healthy * kAllCalls / health.total),
      health.overprovisioning_factor,
      load.panic && load.sum() > 0};
}

void answer_with(PlanAnswer answer, const std::vector<Row>& rows, Plan& plan) {
  std::vector<PriorityHealth> healths;
  healths.reserve(rows.size());
  for (const Row& row : rows)
    healths.push_back(health_of(row, answer.then));
  const bool is_tiered = answer.mode == AggregateMode::kTiered;
  const auto loads =
      is_tiered ? priority_loads(healths, plan.panic_threshold) : first_takes_all(healths);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    give_load(rows[i], loads[i], answer, plan);
    PlannedPriority& planned = planned_of(plan, rows[i]);
    if (is_tiered) (answer.then ? planned.then : planned.now) = scores_of(healths[i], loads[i]);
  }
}

// Sums the shares from the endpoints up. Calls that no endpoint takes fail (P1, P2 of
// messages/plan.hpp).
void sum_up(PlanAnswer answer, Plan& plan) {
  CallShare taken = 0;
  for (PlannedLeaf& leaf : plan.leaves) {
    for (PlannedPriority& priority : leaf.priorities) {
      for (PlannedLocality& locality : priority.localities) {
        for (const PlannedEndpoint& endpoint : locality.endpoints)
          share_in(locality.shares, answer) += share_in(endpoint.shares, answer);
        if (zone_of(locality.name, plan.caller) == CallZone::kOwn)
          share_in(plan.own_zone, answer) += share_in(locality.shares, answer);
        share_in(priority.shares, answer) += share_in(locality.shares, answer);
      }
      share_in(leaf.shares, answer) += share_in(priority.shares, answer);
    }
    taken += share_in(leaf.shares, answer);
  }
  share_in(plan.failing, answer) = kAllCalls - taken;
}

}  // namespace

absl::StatusOr<Plan> make_plan(const PlanInput& input, const PlanAssumptions& assumptions) {
  Plan plan;
  plan.cluster = input.cluster;
  plan.caller = input.caller;
  plan.is_aggregate = input.is_aggregate;
  if (input.is_aggregate) {
    plan.mode = input.own_mode.value_or(input.runtime_mode);
    plan.mode_is_own = input.own_mode.has_value();
    plan.panic_threshold_is_own = input.own_panic_threshold.has_value();
  }
  plan.panic_threshold =
      plan.panic_threshold_is_own ? *input.own_panic_threshold : assumptions.panic_threshold;
  std::vector<Row> rows = lay_out(input, plan);
  if (auto status = assume_all(assumptions, rows, plan); !status.ok()) return status;
  for (const PlanAnswer answer : kAnswers) {
    answer_with(answer, rows, plan);
    sum_up(answer, plan);
  }
  return plan;
}

CallShare share_in(const PlannedShares& shares, PlanAnswer answer) {
  const PlannedShare& mode =
      answer.mode == AggregateMode::kPriority ? shares.priority : shares.tiered;
  return answer.then ? mode.then : mode.now;
}

// The share of calls that move to another endpoint, begin to fail, or stop failing. Each such call
// is a gain in one place and a loss in another, so only gains are summed.
CallShare moved_calls(const Plan& plan, PlanAnswer from, PlanAnswer to) {
  CallShare moved = 0;
  const auto add = [&](const PlannedShares& shares) {
    const CallShare before = share_in(shares, from);
    const CallShare after = share_in(shares, to);
    if (after > before) moved += after - before;
  };
  for (const PlannedLeaf& leaf : plan.leaves) {
    for (const PlannedPriority& priority : leaf.priorities) {
      for (const PlannedLocality& locality : priority.localities) {
        for (const PlannedEndpoint& endpoint : locality.endpoints)
          add(endpoint.shares);
      }
    }
  }
  add(plan.failing);
  return moved;
}

}  // namespace signalbox::lb
