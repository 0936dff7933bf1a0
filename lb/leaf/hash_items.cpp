// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/hash_items.hpp"

namespace signalbox::lb {

std::vector<HashItem> hash_items(const EndpointSet& members,
                                 const EndpointsPtr& endpoints,
                                 WeightRule rule) {
  std::vector<HashItem> items;
  if (endpoints == nullptr) return items;
  const auto weighed = weigh(*endpoints, rule);
  items.reserve(weighed.size());
  for (const WeighedEndpoint& one : weighed) {
    // `members` has an endpoint once, even if the list has it twice, so later occurrences are
    // skipped.
    if (items.size() == members.size() || members[items.size()].endpoint != one.endpoint) continue;
    const std::string& key = one.endpoint->hash_key;
    items.push_back({key.empty() ? one.endpoint->addresses.front().str() : key, one.weight});
  }
  return items;
}

}  // namespace signalbox::lb
