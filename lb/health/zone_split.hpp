// SPDX-License-Identifier: Apache-2.0
//
// zone_split — how zone-aware routing divides the calls of one priority over its localities.
//
//   localities with their fit endpoints, the caller's locality, ZoneAware ─▶ [split_by_zone] ─▶
//                                                                  a share for each locality
//
// Envoy's arithmetic: of all fit endpoints, or of their weights (ZoneBasis), a zone has a part (its
// capacity); of all callers, a part is in the zone. A caller keeps its calls in its own zone if the
// zone's part of the capacity is at least its part of the callers; else it keeps capacity / callers
// of them. The other calls go to zones with more capacity than callers, by the difference. With
// ZoneAware::force_from, a zone with so many fit endpoints keeps all calls.
//
// Envoy counts the callers of each zone in its local cluster. A client here knows no other callers,
// so each zone is taken to have as many as any other (docs/decisions/0150). Zones are those of the
// localities, whether fit endpoints are there or not, and the caller's.
//
// Where the rule does not hold (ZoneVerdict), localities have shares by their weights, as without
// ZoneAware. Within a zone, localities (its sub-zones) have shares by their capacities.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "messages/endpoints.hpp"
#include "messages/lb_config.hpp"
#include "messages/plan.hpp"

namespace signalbox::lb {

struct ZonePlace {
  const LocalityName* name = nullptr;  ///< Never null.
  std::uint32_t weight = 1;            ///< The locality's weight (EDS).
  std::uint64_t fit = 0;               ///< Endpoints that can take calls now.
  std::uint64_t fit_weight = 0;        ///< The sum of their weights; read with kWeights.
};

enum class ZoneVerdict : std::uint8_t {
  kHolds,
  kCallerUnknown,  ///< The caller's zone is not known.
  kOneZone,        ///< All localities are in the caller's zone.
  kTooSmall        ///< Fewer than min_cluster_size endpoints are fit.
};

struct ZoneSplit {
  ZoneVerdict verdict = ZoneVerdict::kHolds;
  /// The part of the calls under the rule that stay in the caller's zone, in 1/10,000, as Envoy
  /// computes it. 0 if the rule does not hold.
  std::uint32_t stays = 0;
  bool forced = false;  ///< All calls under the rule stay because of ZoneAware::force_from.
  /// A share for each place, in its order. They sum to kAllCalls, or to 0 if no place has a fit
  /// endpoint and a weight.
  std::vector<CallShare> shares;
};

ZoneSplit split_by_zone(std::span<const ZonePlace> places,
                        const LocalityName& caller,
                        const ZoneAware& rules);

/// Why the calls are divided as they are, for explanations and plans: "zone-aware: 60 % of the
/// calls stay in zone a".
std::string zone_text(const ZoneSplit& split, const LocalityName& caller, const ZoneAware& rules);

}  // namespace signalbox::lb
