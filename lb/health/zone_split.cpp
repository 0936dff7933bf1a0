// SPDX-License-Identifier: Apache-2.0
#include "lb/health/zone_split.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/health/apportion.hpp"

namespace signalbox::lb {
namespace {

constexpr std::uint64_t kWhole = 10'000;  // Envoy's unit of parts.

using Zone = std::pair<std::string, std::string>;  // Region and zone.
/// The fit endpoints of each zone; the caller's is among them.
using Capacities = std::map<Zone, std::uint64_t>;

Zone zone_in(const LocalityName& name) {
  return {name.region, name.zone};
}

Capacities capacities_of(std::span<const ZonePlace> places, const LocalityName& caller) {
  Capacities capacities{{zone_in(caller), 0}};
  for (const ZonePlace& place : places)
    capacities[zone_in(*place.name)] += place.fit;
  return capacities;
}

ZoneVerdict verdict_of(const Capacities& capacities,
                       std::uint64_t all,
                       const LocalityName& caller,
                       const ZoneAware& rules) {
  if (caller.zone.empty()) return ZoneVerdict::kCallerUnknown;
  if (capacities.size() < 2) return ZoneVerdict::kOneZone;
  // Without a fit endpoint there is nothing to divide, whatever min_cluster_size says.
  if (all == 0 || all < rules.min_cluster_size) return ZoneVerdict::kTooSmall;
  return ZoneVerdict::kHolds;
}

// The weight of each other zone for the calls that do not stay: what it has more than its callers
// need. If rounding leaves nothing, its capacity.
Capacities residuals_of(const Capacities& capacities,
                        const Zone& own,
                        std::uint64_t all,
                        std::uint64_t callers) {
  Capacities residuals;
  std::uint64_t sum = 0;
  for (const auto& [zone, fit] : capacities) {
    const std::uint64_t capacity = kWhole * fit / all;
    const std::uint64_t rest = zone != own && capacity > callers ? capacity - callers : 0;
    residuals[zone] = rest;
    sum += rest;
  }
  if (sum > 0) return residuals;
  residuals = capacities;
  residuals[own] = 0;
  return residuals;
}

// Adds the part of `share` that each place of `zone` gets: by its fit endpoints.
void give(CallShare share,
          const Zone& zone,
          std::span<const ZonePlace> places,
          std::vector<CallShare>& shares) {
  std::vector<std::uint64_t> weights;
  weights.reserve(places.size());
  for (const ZonePlace& place : places)
    weights.push_back(zone_in(*place.name) == zone ? place.fit : 0);
  const auto parts = apportion(share, weights);
  for (std::size_t at = 0; at < parts.size(); ++at)
    shares[at] += parts[at];
}

// Adds the part of `share` that each place gets without the rule: by its weight.
void give_by_weight(CallShare share,
                    std::span<const ZonePlace> places,
                    std::vector<CallShare>& shares) {
  std::vector<std::uint64_t> weights;
  weights.reserve(places.size());
  for (const ZonePlace& place : places)
    weights.push_back(place.fit > 0 ? place.weight : 0);
  const auto parts = apportion(share, weights);
  for (std::size_t at = 0; at < parts.size(); ++at)
    shares[at] += parts[at];
}

std::string percent_of(std::uint32_t parts) {
  return absl::StrCat(parts / 100.0, " %");
}

}  // namespace

ZoneSplit split_by_zone(std::span<const ZonePlace> places,
                        const LocalityName& caller,
                        const ZoneAware& rules) {
  ZoneSplit split;
  split.shares.assign(places.size(), 0);
  const Capacities capacities = capacities_of(places, caller);
  std::uint64_t all = 0;
  for (const auto& [zone, fit] : capacities)
    all += fit;
  split.verdict = verdict_of(capacities, all, caller, rules);
  if (split.verdict != ZoneVerdict::kHolds) {
    give_by_weight(kAllCalls, places, split.shares);
    return split;
  }
  const Zone own = zone_in(caller);
  const std::uint64_t callers = std::max<std::uint64_t>(kWhole / capacities.size(), 1);
  const std::uint64_t capacity = kWhole * capacities.at(own) / all;
  // Envoy lets a zone without capacity keep nothing, even if it has no callers.
  const bool all_stay = capacity > 0 && capacity >= callers;
  split.stays = static_cast<std::uint32_t>(all_stay ? kWhole : capacity * kWhole / callers);

  const CallShare ruled = kAllCalls / 100 * std::min<std::uint32_t>(rules.routing_enabled, 100);
  const auto staying = static_cast<CallShare>(std::uint64_t{ruled} * split.stays / kWhole);
  give(staying, own, places, split.shares);
  std::vector<Zone> others;
  std::vector<std::uint64_t> weights;
  for (const auto& [zone, rest] : residuals_of(capacities, own, all, callers)) {
    others.push_back(zone);
    weights.push_back(rest);
  }
  const auto leaving = apportion(ruled - staying, weights);
  for (std::size_t at = 0; at < others.size(); ++at)
    give(leaving[at], others[at], places, split.shares);
  give_by_weight(kAllCalls - ruled, places, split.shares);
  return split;
}

std::string zone_text(const ZoneSplit& split, const LocalityName& caller, const ZoneAware& rules) {
  switch (split.verdict) {
    case ZoneVerdict::kCallerUnknown:
      return "not zone-aware: the node of the bootstrap has no locality with a zone";
    case ZoneVerdict::kOneZone:
      return absl::StrCat("zone-aware: all endpoints are in zone ", caller.zone);
    case ZoneVerdict::kTooSmall:
      return absl::StrCat("not zone-aware: fewer than ",
                          rules.min_cluster_size,
                          " endpoints can take calls (min_cluster_size)");
    case ZoneVerdict::kHolds:
      break;
  }
  return absl::StrCat("zone-aware: ",
                      percent_of(split.stays),
                      " of the calls stay in zone ",
                      caller.zone,
                      rules.routing_enabled >= 100
                          ? ""
                          : absl::StrCat(" (routing_enabled: of ", rules.routing_enabled, " %)"));
}

}  // namespace signalbox::lb
