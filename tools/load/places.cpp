// SPDX-License-Identifier: Apache-2.0
#include "tools/load/places.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace signalbox::tools {
namespace {

// The rank of a place is the cluster's index × kMostPriorities + the priority. EDS allows no
// priority above 128.
constexpr std::uint32_t kMostPriorities = 1000;

// The leaf's index in its aggregate's list of clusters; 0 without an aggregate.
std::uint32_t order_of(const TargetStatus& target, const ClusterStatus& leaf) {
  for (const ClusterStatus& cluster : target.clusters) {
    if (cluster.name != leaf.aggregate || cluster.kind != ClusterKind::kAggregate) continue;
    const auto at = std::ranges::find(cluster.leaves, leaf.name);
    return static_cast<std::uint32_t>(at - cluster.leaves.begin());
  }
  return 0;
}

void add_places(const ClusterStatus& leaf,
                std::uint32_t order,
                std::map<std::string, RankedPlace>& places) {
  for (std::uint32_t priority = 0; priority < leaf.priorities.size(); ++priority) {
    const RankedPlace place{.place = {.cluster = leaf.name.str(), .priority = priority},
                            .rank = order * kMostPriorities + priority};
    for (const LocalityStatus& locality : leaf.priorities[priority].localities) {
      for (const EndpointStatus& endpoint : locality.endpoints) {
        for (const AddressStatus& address : endpoint.addresses) {
          const auto [known, is_new] = places.emplace(address.address.str(), place);
          if (!is_new && known->second.rank > place.rank) known->second = place;
        }
      }
    }
  }
}

}  // namespace

std::map<std::string, RankedPlace> places_of(const RuntimeStatus& status,
                                             const std::string& target) {
  std::map<std::string, RankedPlace> places;
  for (const TargetStatus& one : status.targets) {
    if (one.name != target) continue;
    for (const ClusterStatus& cluster : one.clusters) {
      if (cluster.kind != ClusterKind::kAggregate)
        add_places(cluster, order_of(one, cluster), places);
    }
  }
  return places;
}

}  // namespace signalbox::tools
