// SPDX-License-Identifier: Apache-2.0
#include "messages/endpoints.hpp"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace signalbox {

std::string to_string(const LocalityName& name) {
  return absl::StrCat(
      "{region=\"", name.region, "\", zone=\"", name.zone, "\", sub_zone=\"", name.sub_zone, "\"}");
}

CallZone zone_of(const LocalityName& endpoint, const LocalityName& caller) {
  if (endpoint.zone.empty() || caller.zone.empty()) return CallZone::kUnknown;
  const bool is_own = endpoint.zone == caller.zone && endpoint.region == caller.region;
  return is_own ? CallZone::kOwn : CallZone::kOther;
}

bool operator==(const Endpoints& left, const Endpoints& right) {
  const auto same_locality = [](const LocalityPtr& a, const LocalityPtr& b) {
    return a == b || *a == *b;
  };
  const auto same_priority = [&](const Priority& a, const Priority& b) {
    return std::ranges::equal(a.localities, b.localities, same_locality) &&
           std::ranges::equal(a.degraded, b.degraded, same_locality) &&
           std::ranges::equal(a.unhealthy, b.unhealthy, same_locality);
  };
  return left.drops == right.drops &&
         left.overprovisioning_percent == right.overprovisioning_percent &&
         left.weighted_priority_health == right.weighted_priority_health &&
         same_exceptions(left.probe_exceptions, right.probe_exceptions) &&
         left.unweighted_localities == right.unweighted_localities &&
         std::ranges::equal(left.priorities, right.priorities, same_priority);
}

std::size_t count_endpoints(const Endpoints& endpoints) {
  std::size_t count = 0;
  for (const Priority& priority : endpoints.priorities) {
    for (const LocalityPtr& locality : priority.localities)
      count += locality->endpoints.size();
  }
  return count;
}

}  // namespace signalbox
