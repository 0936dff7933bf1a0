// SPDX-License-Identifier: Apache-2.0
#include "lb/health/zone_split.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "lb/health/apportion.hpp"

namespace signalbox::lb {
namespace {

constexpr std::uint64_t kAllParts = 10'000;  // Envoy's unit of parts.

// Region and zone: parts of the names of places and caller.
using Zone = std::pair<absl::string_view, absl::string_view>;

struct Members {
  std::uint64_t fit = 0;            // Fit endpoints of the zone.
  std::uint64_t capacity = 0;       // Their number or the sum of their weights, by ZoneBasis.
  std::vector<std::size_t> places;  // The zone's localities, by index.
};

// The caller's zone is among them, with or without localities.
using Zones = std::map<Zone, Members>;

Zone zone_in(const LocalityName& name) {
  return {name.region, name.zone};
}

std::uint64_t capacity_of(const ZonePlace& place, ZoneBasis basis) {
  return basis == ZoneBasis::kWeights ? place.fit_weight : place.fit;
}

Zones zones_of(std::span<const ZonePlace> places, const LocalityName& caller, ZoneBasis basis) {
  Zones zones;
  zones.try_emplace(zone_in(caller));
  for (std::size_t at = 0; at < places.size(); ++at) {
    Members& members = zones[zone_in(*places[at].name)];
    members.fit += places[at].fit;
    members.capacity += capacity_of(places[at], basis);
    members.places.push_back(at);
  }
  return zones;
}

ZoneVerdict verdict_of(const Zones& zones,
                       std::uint64_t fit,
                       std::uint64_t all,
                       const LocalityName& caller,
                       const ZoneAware& rules) {
  if (caller.zone.empty()) return ZoneVerdict::kCallerUnknown;
  if (zones.size() < 2) return ZoneVerdict::kOneZone;
  // Without capacity there is nothing to divide, whatever min_cluster_size says.
  if (all == 0 || fit < rules.min_cluster_size) return ZoneVerdict::kTooSmall;
  return ZoneVerdict::kHolds;
}

// The weight of each zone, in the order of `zones`, for the calls that do not stay: for each other
// zone the part of the capacity that its callers do not need. If rounding leaves nothing, its
// capacity.
std::vector<std::uint64_t> residuals_of(const Zones& zones,
                                        const Zone& own,
                                        std::uint64_t all,
                                        std::uint64_t callers) {
  std::vector<std::uint64_t> residuals;
  std::uint64_t sum = 0;
  for (const auto& [zone, members] : zones) {
    const std::uint64_t capacity = kAllParts * members.capacity / all;
    residuals.push_back(zone != own && capacity > callers ? capacity - callers : 0);
    sum += residuals.back();
  }
  if (sum > 0) return residuals;
  residuals.clear();
  for (const auto& [zone, members] : zones)
    residuals.push_back(zone == own ? 0 : members.capacity);
  return residuals;
}

// Adds the part of `share` that each of a zone's places gets: by its capacity.
void give(CallShare share,
          const Members& zone,
          std::span<const ZonePlace> places,
          ZoneBasis basis,
          std::vector<CallShare>& shares) {
  std::vector<std::uint64_t> weights;
  weights.reserve(zone.places.size());
  for (const std::size_t place : zone.places)
    weights.push_back(capacity_of(places[place], basis));
  const auto parts = apportion(share, weights);
  for (std::size_t at = 0; at < parts.size(); ++at)
    shares[zone.places[at]] += parts[at];
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
  const Zones zones = zones_of(places, caller, rules.basis);
  std::uint64_t fit = 0;
  std::uint64_t all = 0;
  for (const auto& [zone, members] : zones) {
    fit += members.fit;
    all += members.capacity;
  }
  split.verdict = verdict_of(zones, fit, all, caller, rules);
  if (split.verdict != ZoneVerdict::kHolds) {
    give_by_weight(kAllCalls, places, split.shares);
    return split;
  }
  const Zone own = zone_in(caller);
  const Members& home = zones.at(own);
  const std::uint64_t callers = std::max<std::uint64_t>(kAllParts / zones.size(), 1);
  const std::uint64_t capacity = kAllParts * home.capacity / all;
  split.forced = rules.force_from && home.fit >= std::max(*rules.force_from, 1U);
  // Envoy lets a zone without capacity keep nothing, even if it has no callers.
  const bool all_stay = split.forced || (capacity > 0 && capacity >= callers);
  split.stays = static_cast<std::uint32_t>(all_stay ? kAllParts : capacity * kAllParts / callers);

  const CallShare ruled = kAllCalls / 100 * std::min<std::uint32_t>(rules.routing_enabled, 100);
  const auto staying = static_cast<CallShare>(std::uint64_t{ruled} * split.stays / kAllParts);
  give(staying, home, places, rules.basis, split.shares);
  const auto leaving = apportion(ruled - staying, residuals_of(zones, own, all, callers));
  auto part = leaving.begin();
  for (const auto& [zone, members] : zones)
    give(*part++, members, places, rules.basis, split.shares);
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
                      split.forced ? " (force_local_zone)" : "",
                      rules.routing_enabled >= 100
                          ? ""
                          : absl::StrCat(" (routing_enabled: of ", rules.routing_enabled, " %)"));
}

}  // namespace signalbox::lb
