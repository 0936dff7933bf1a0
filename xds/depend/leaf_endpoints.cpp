// SPDX-License-Identifier: Apache-2.0
#include "xds/depend/leaf_endpoints.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "messages/invariant.hpp"

namespace signalbox::xds {
namespace {

using KnownLocalities = std::multimap<LocalityName, LocalityPtr>;

// Visits the localities of all lists of all priorities.
template <typename Endpoints, typename Visit>
void for_each_locality(Endpoints& endpoints, const Visit& visit) {
  for (auto& priority : endpoints.priorities) {
    for (auto* list : priority.lists())
      std::for_each(list->begin(), list->end(), visit);
  }
}

// The key is the name alone, so a locality is also found after it moved to another priority.
KnownLocalities localities_of(const Endpoints& endpoints) {
  KnownLocalities known;
  for_each_locality(endpoints,
                    [&](const LocalityPtr& locality) { known.emplace(locality->name, locality); });
  return known;
}

void reuse(LocalityPtr& locality, const KnownLocalities& known) {
  const auto [first, last] = known.equal_range(locality->name);
  for (auto it = first; it != last; ++it) {
    if (it->second != locality && *it->second != *locality) continue;
    locality = it->second;
    return;
  }
}

EndpointsPtr share(Endpoints fresh, const EndpointsPtr& before) {
  if (before == nullptr) return std::make_shared<const Endpoints>(std::move(fresh));
  const KnownLocalities known = localities_of(*before);
  for_each_locality(fresh, [&](LocalityPtr& locality) { reuse(locality, known); });
  if (fresh == *before) return before;
  return std::make_shared<const Endpoints>(std::move(fresh));
}

}  // namespace

EndpointsPtr endpoints_from_eds(const EndpointsPtr& received, const EndpointsPtr& before) {
  Endpoints fresh = *received;
  if (fresh.priorities.empty()) fresh.priorities.emplace_back();
  return share(std::move(fresh), before);
}

EndpointsPtr endpoints_from_dns(const DnsName& name,
                                const std::vector<Address>& addresses,
                                const EndpointsPtr& before) {
  SIGNALBOX_INVARIANT(!addresses.empty(), "an endpoint has an address");
  Locality locality;
  locality.endpoints.push_back(Endpoint{.addresses = addresses, .hostname = name.str()});
  Endpoints fresh;
  fresh.priorities.push_back(Priority{{std::make_shared<const Locality>(std::move(locality))}});
  return share(std::move(fresh), before);
}

}  // namespace signalbox::xds
