// SPDX-License-Identifier: Apache-2.0
#include "tools/plan_report.hpp"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace signalbox::tools {
namespace {

using nlohmann::json;

constexpr std::size_t kEndpointsInTable = 16;
constexpr CallShare kPercent = kAllCalls / 100;
constexpr int kBarCells = 8;

std::string indented(const PlanRow& row) {
  return std::string(2 * row.depth, ' ') + row.name;
}

// --- rows ------------------------------------------------------------------

// "NOW → THEN", or only "NOW" if both are equal, as they are without assumptions.
std::string change(const std::string& now, const std::string& then) {
  return now != then ? absl::StrCat(now, " → ", then) : now;
}

// "50 × 1.4 = 70": the percentage of healthy hosts, EDS's overprovisioning factor, the score. The
// text is only the score if the score equals the percentage.
std::string score_text(const PlannedHealth& health) {
  if (health.healthy_hosts == health.healthy * kPercent) return absl::StrCat(health.healthy);
  const std::uint64_t product =
      std::uint64_t{health.healthy_hosts} * health.overprovisioning_factor;
  return absl::StrCat(percent_text(health.healthy_hosts),
                      " × ",
                      health.overprovisioning_factor / 100.0,
                      product > std::uint64_t{100} * kAllCalls ? ", at most " : " = ",
                      health.healthy);
}

std::string detail_of(const PlannedPriority& priority) {
  std::string text =
      absl::StrCat("health ", change(score_text(priority.now), score_text(priority.then)));
  if (priority.now.degraded + priority.then.degraded > 0) {
    absl::StrAppend(
        &text,
        ", degraded ",
        change(absl::StrCat(priority.now.degraded), absl::StrCat(priority.then.degraded)));
  }
  if (priority.now.panic || priority.then.panic) absl::StrAppend(&text, ", panic");
  return text;
}

std::string detail_of(const PlannedEndpoint& endpoint) {
  if (endpoint.down) return "down";
  const bool is_usual =
      endpoint.health == HealthStatus::kUnknown || endpoint.health == HealthStatus::kHealthy;
  return is_usual ? "" : std::string(to_string(endpoint.health));
}

void add_endpoints(const PlannedLocality& locality, std::size_t most, std::vector<PlanRow>& rows) {
  std::size_t shown = 0;
  for (const PlannedEndpoint& endpoint : locality.endpoints) {
    if (shown++ == most) break;
    rows.push_back(
        {3, endpoint.addresses.front().str(), detail_of(endpoint), true, endpoint.shares});
  }
  if (locality.endpoints.size() <= most) return;
  rows.push_back(
      {3, absl::StrCat("… and ", locality.endpoints.size() - most, " more"), "", false, {}});
}

// --- the table -------------------------------------------------------------

std::string bar(CallShare share) {
  static constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const std::uint64_t eighths = (std::uint64_t{share} * kBarCells * 8 + kAllCalls / 2) / kAllCalls;
  std::string text;
  std::size_t cells = eighths / 8;
  for (std::size_t i = 0; i < cells; ++i)
    text += "█";
  if (eighths % 8 != 0) {
    text += kParts[eighths % 8];
    ++cells;
  }
  return text + std::string(kBarCells - cells, ' ');
}

std::string cells(const PlannedShares& shares, const PlanView& view) {
  std::string text;
  for (const AggregateMode mode : view.modes) {
    const CallShare now = lb::share_in(shares, {mode, false});
    const CallShare then = lb::share_in(shares, {mode, true});
    absl::StrAppendFormat(&text, "  %6s", percent_text(now));
    if (view.has_then()) absl::StrAppendFormat(&text, " %6s", percent_text(then));
    absl::StrAppend(&text, " ", bar(then));
  }
  return text;
}

// The number of terminal columns. Every character counts as one column.
std::size_t width(absl::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(const std::string& text, std::size_t columns) {
  return text + std::string(columns - std::min(columns, width(text)), ' ');
}

std::string heading(const Plan& plan, const PlanView& view, std::size_t columns) {
  std::string modes(columns, ' ');
  std::string times(columns, ' ');
  for (const AggregateMode mode : view.modes) {
    const std::size_t group = view.has_then() ? 16 + kBarCells : 9 + kBarCells;
    const std::string name =
        absl::StrCat("  ", mode_name(mode), mode == plan.mode ? " (as it runs)" : "");
    modes += padded(name, group);
    times += padded(view.has_then() ? "     now   then" : "", group);
  }
  const auto line = [](std::string text) {
    absl::StripTrailingAsciiWhitespace(&text);
    return text + "\n";
  };
  return line(std::move(modes)) + (view.has_then() ? line(std::move(times)) : "");
}

// --- data ------------------------------------------------------------------

double percent(CallShare share) {
  return static_cast<double>(share) / kPercent;
}

json to_json(const PlannedShares& shares, const PlanView& view) {
  json data = json::object();
  for (const AggregateMode mode : view.modes) {
    data[std::string(mode_name(mode))] = {{"now", percent(lb::share_in(shares, {mode, false}))},
                                          {"then", percent(lb::share_in(shares, {mode, true}))}};
  }
  return data;
}

json to_json(const PlannedHealth& health) {
  return {{"healthy", health.healthy},
          {"degraded", health.degraded},
          {"healthy_hosts", percent(health.healthy_hosts)},
          {"overprovisioning_factor", health.overprovisioning_factor},
          {"panic", health.panic}};
}

json to_json(const PlannedEndpoint& endpoint, const PlanView& view) {
  json addresses = json::array();
  for (const Address& address : endpoint.addresses)
    addresses.push_back(address.str());
  return {{"addresses", std::move(addresses)},
          {"health", std::string(to_string(endpoint.health))},
          {"weight", endpoint.weight},
          {"down", endpoint.down},
          {"shares", to_json(endpoint.shares, view)}};
}

json to_json(const PlannedLocality& locality, const PlanView& view) {
  json endpoints = json::array();
  for (const PlannedEndpoint& endpoint : locality.endpoints)
    endpoints.push_back(to_json(endpoint, view));
  return {{"region", locality.name.region},
          {"zone", locality.name.zone},
          {"sub_zone", locality.name.sub_zone},
          {"weight", locality.weight},
          {"shares", to_json(locality.shares, view)},
          {"endpoints", std::move(endpoints)}};
}

json to_json(const PlannedLeaf& leaf, const PlanView& view) {
  json priorities = json::array();
  for (const PlannedPriority& priority : leaf.priorities) {
    json localities = json::array();
    for (const PlannedLocality& locality : priority.localities)
      localities.push_back(to_json(locality, view));
    priorities.push_back(
        {{"priority", priorities.size()},
         {"assumed", priority.assumed},
         {"health", {{"now", to_json(priority.now)}, {"then", to_json(priority.then)}}},
         {"shares", to_json(priority.shares, view)},
         {"localities", std::move(localities)}});
  }
  return {{"name", leaf.name.str()},
          {"lb_policy", leaf.lb_policy},
          {"note", leaf.note},
          {"shares", to_json(leaf.shares, view)},
          {"priorities", std::move(priorities)}};
}

json to_json(const PlanAssumptions& assumptions) {
  json health = json::array();
  for (const AssumedHealth& one : assumptions.health) {
    health.push_back({{"cluster", one.leaf.str()},
                      {"priority", one.priority},
                      {"healthy", one.healthy_percent},
                      {"degraded", one.degraded_percent}});
  }
  return {{"down", assumptions.down},
          {"health", std::move(health)},
          {"panic_threshold", assumptions.panic_threshold}};
}

const char* mode_from(const Plan& plan) {
  if (!plan.is_aggregate) return "leaf";
  return plan.mode_is_own ? "metadata" : "default";
}

}  // namespace

absl::string_view mode_name(AggregateMode mode) {
  return mode == AggregateMode::kPriority ? "priority" : "tiered";
}

AggregateMode other_mode(AggregateMode mode) {
  return mode == AggregateMode::kPriority ? AggregateMode::kTiered : AggregateMode::kPriority;
}

std::string percent_text(CallShare share) {
  if (share > 0 && share < kPercent / 200) return "<0.01";
  std::string text = absl::StrFormat("%.2f", percent(share));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string locality_text(const LocalityName& name) {
  const std::string text = absl::StrJoin({absl::string_view(name.region),
                                          absl::string_view(name.zone),
                                          absl::string_view(name.sub_zone)},
                                         "/");
  const absl::string_view shown = absl::StripSuffix(absl::StripSuffix(text, "/"), "/");
  return shown.empty() ? "(no locality)" : std::string(shown);
}

std::vector<PlanRow> plan_rows(const Plan& plan, std::size_t most_endpoints) {
  std::vector<PlanRow> rows;
  for (const PlannedLeaf& leaf : plan.leaves) {
    const std::size_t first = rows.size();
    rows.push_back({0, leaf.name.str(), leaf.lb_policy, true, leaf.shares});
    for (std::size_t i = 0; i < leaf.priorities.size(); ++i) {
      const PlannedPriority& priority = leaf.priorities[i];
      rows.push_back({1, absl::StrCat("priority ", i), detail_of(priority), true, priority.shares});
      for (const PlannedLocality& locality : priority.localities) {
        rows.push_back({2,
                        locality_text(locality.name),
                        absl::StrCat("weight ", locality.weight),
                        true,
                        locality.shares});
        add_endpoints(locality, most_endpoints, rows);
      }
    }
    const auto index = static_cast<std::size_t>(&leaf - plan.leaves.data());
    for (std::size_t i = first; i < rows.size(); ++i)
      rows[i].leaf = index;
  }
  if (plan.failing != PlannedShares{})
    rows.push_back({0, "(none: calls fail)", "", true, plan.failing});
  return rows;
}

std::string assumption_text(const PlanAssumptions& assumptions) {
  std::vector<std::string> parts;
  for (const std::string& down : assumptions.down)
    parts.push_back(absl::StrCat(down, " is down"));
  for (const AssumedHealth& health : assumptions.health) {
    std::string text = absl::StrCat("of ",
                                    health.leaf.str(),
                                    "/",
                                    health.priority,
                                    " ",
                                    health.healthy_percent,
                                    " % are healthy");
    if (health.degraded_percent > 0)
      absl::StrAppend(&text, " and ", health.degraded_percent, " % degraded");
    parts.push_back(std::move(text));
  }
  return absl::StrJoin(parts, ", ");
}

std::vector<std::string> plan_summary(const Plan& plan, const PlanView& view) {
  std::vector<std::string> lines;
  for (const AggregateMode mode : view.modes) {
    if (plan.caller.zone.empty()) break;
    const std::string now = percent_text(lb::share_in(plan.own_zone, {mode, false}));
    const std::string then = percent_text(lb::share_in(plan.own_zone, {mode, true}));
    lines.push_back(absl::StrCat("In ",
                                 mode_name(mode),
                                 " mode ",
                                 change(now, then),
                                 " % of the calls stay in the caller's zone, ",
                                 locality_text({plan.caller.region, plan.caller.zone, ""}),
                                 "."));
  }
  for (const AggregateMode mode : view.modes) {
    if (!view.has_then()) break;
    const CallShare failed = lb::share_in(plan.failing, {mode, false});
    const CallShare failing = lb::share_in(plan.failing, {mode, true});
    const CallShare lost = failing > failed ? failing - failed : 0;
    const CallShare moved = lb::moved_calls(plan, {mode, false}, {mode, true}) - lost;
    lines.push_back(
        absl::StrCat("In ",
                     mode_name(mode),
                     " mode ",
                     percent_text(moved),
                     " % of the calls would move",
                     failing > 0 ? absl::StrCat(", and ", percent_text(failing), " % fail") : "",
                     "."));
  }
  if (!plan.is_aggregate) {
    lines.push_back(
        absl::StrCat(plan.cluster.str(),
                     " is no aggregate: it always runs in priority mode; tiered is what "
                     "it would be below an aggregate."));
    return lines;
  }
  const AggregateMode other = other_mode(plan.mode);
  lines.push_back(absl::StrCat("It runs in ",
                               mode_name(plan.mode),
                               plan.mode_is_own ? " mode, as its metadata say."
                                                : " mode, unless its runtime says otherwise."));
  if (plan.panic_threshold_is_own) {
    lines.push_back(absl::StrCat("In tiered mode a priority panics below ",
                                 plan.panic_threshold,
                                 " % of fit endpoints, as its common_lb_config says."));
  }
  lines.push_back(
      absl::StrCat("Flipped to ",
                   mode_name(other),
                   ", ",
                   percent_text(lb::moved_calls(plan, {plan.mode, true}, {other, true})),
                   view.has_then() ? " % of the calls would then go elsewhere."
                                   : " % of the calls would go elsewhere."));
  return lines;
}

std::string plan_table(const Plan& plan, const PlanView& view) {
  const auto rows = plan_rows(plan, kEndpointsInTable);
  std::size_t columns = 0;
  for (const PlanRow& row : rows)
    columns = std::max(columns, width(indented(row)));
  std::string text = absl::StrCat(
      plan.cluster.str(),
      ": percent of its calls",
      view.has_then() ? absl::StrCat(", now and if ", assumption_text(view.assumptions)) : "",
      "\n\n",
      heading(plan, view, columns));
  for (const PlanRow& row : rows) {
    std::string line = padded(indented(row), columns);
    if (row.has_shares) line += cells(row.shares, view);
    if (!row.detail.empty()) line += "  " + row.detail;
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&text, line, "\n");
  }
  text += "\n";
  for (const std::string& line : plan_summary(plan, view))
    absl::StrAppend(&text, line, "\n");
  for (const PlannedLeaf& leaf : plan.leaves) {
    if (!leaf.note.empty()) absl::StrAppend(&text, leaf.name.str(), ": ", leaf.note, ".\n");
  }
  for (const std::string& note : plan.notes)
    absl::StrAppend(&text, "Note: ", note, ".\n");
  return text;
}

json plan_json(const Plan& plan, const PlanView& view) {
  json clusters = json::array();
  for (const PlannedLeaf& leaf : plan.leaves)
    clusters.push_back(to_json(leaf, view));
  json moved = json::object();
  for (const AggregateMode mode : view.modes) {
    moved[std::string(mode_name(mode))] =
        percent(lb::moved_calls(plan, {mode, false}, {mode, true}));
  }
  const AggregateMode other = other_mode(plan.mode);
  return {{"cluster", plan.cluster.str()},
          {"is_aggregate", plan.is_aggregate},
          {"mode", std::string(mode_name(plan.mode))},
          {"mode_from", mode_from(plan)},
          {"panic_threshold", plan.panic_threshold},
          {"panic_threshold_from", plan.panic_threshold_is_own ? "cluster" : "default"},
          {"assumed", to_json(view.assumptions)},
          {"failing", to_json(plan.failing, view)},
          {"caller",
           {{"region", plan.caller.region},
            {"zone", plan.caller.zone},
            {"sub_zone", plan.caller.sub_zone}}},
          {"own_zone", plan.caller.zone.empty() ? json() : to_json(plan.own_zone, view)},
          {"moved", std::move(moved)},
          {"flip",
           {{"to", std::string(mode_name(other))},
            {"moved", percent(lb::moved_calls(plan, {plan.mode, true}, {other, true}))}}},
          {"notes", plan.notes},
          {"clusters", std::move(clusters)}};
}

}  // namespace signalbox::tools
