// SPDX-License-Identifier: Apache-2.0
#include "lb/health/endpoint_weights.hpp"

#include <algorithm>

namespace signalbox::lb {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr unsigned kFractionBits = 31;
constexpr std::uint64_t kOne = std::uint64_t{1} << kFractionBits;

// `part` / `whole`, in units of 2⁻³¹. Both are 32-bit weights, or sums of fewer than 2³² of them.
std::uint64_t fraction(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<std::uint64_t>((Wide{part} << kFractionBits) / whole);
}

std::uint64_t weight_of_both(std::uint64_t locality, std::uint64_t endpoint) {
  return std::max<std::uint64_t>((locality * endpoint) >> kFractionBits, 1);
}

std::uint64_t sum_of_localities(const Priority& priority) {
  std::uint64_t sum = 0;
  for (const LocalityPtr& locality : priority.localities)
    sum += locality->weight;
  return sum;
}

std::uint64_t sum_of_endpoints(const Locality& locality) {
  std::uint64_t sum = 0;
  for (const Endpoint& endpoint : locality.endpoints)
    sum += endpoint.weight;
  return sum;
}

}  // namespace

std::vector<WeighedEndpoint> weigh(const Endpoints& endpoints, WeightRule rule) {
  static_assert(kOne <= UINT32_MAX, "a product of two fractions fits 64 bits");
  std::vector<WeighedEndpoint> weighed;
  weighed.reserve(count_endpoints(endpoints));
  for (const Priority& priority : endpoints.priorities) {
    const std::uint64_t localities = sum_of_localities(priority);
    for (const LocalityPtr& locality : priority.localities) {
      const std::uint64_t share = fraction(locality->weight, localities);
      const std::uint64_t within = sum_of_endpoints(*locality);
      for (const Endpoint& endpoint : locality->endpoints) {
        const std::uint64_t weight =
            rule == WeightRule::kShare
                ? weight_of_both(share, fraction(endpoint.weight, within))
                : std::max<std::uint64_t>(std::uint64_t{locality->weight} * endpoint.weight, 1);
        weighed.push_back({locality, &endpoint, weight});
      }
    }
  }
  return weighed;
}

}  // namespace signalbox::lb
