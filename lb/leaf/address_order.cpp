// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/address_order.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"

#include "lb/health/endpoint_weights.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {
namespace {

using Order = std::vector<WeighedEndpoint>;

// Fisher-Yates shuffle.
void shuffle_evenly(Order& order, std::uint64_t seed) {
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[draw_below(seed, Salt::kEndpoint, left, left)]);
}

// A number between 0 and 1, both excluded: the upper 52 bits of the draw plus a half, over 2⁵².
double uniform(std::uint64_t seed, std::uint64_t step) {
  const std::uint64_t bits = draw(seed, Salt::kEndpoint, step) >> 12U;
  return (static_cast<double>(bits) + 0.5) * 0x1.0p-52;
}

// Weighted shuffle of Efraimidis and Spirakis: sorts by u^(1/w), the greatest first. Sorting by
// -ln(u)/w, the least first, gives the same order, and large weights do not round the keys to 1.
void shuffle_by_weight(Order& order, std::uint64_t seed) {
  std::vector<std::pair<double, std::size_t>> keys;
  keys.reserve(order.size());
  for (std::size_t at = 0; at < order.size(); ++at)
    keys.emplace_back(-std::log(uniform(seed, at)) / static_cast<double>(order[at].weight), at);
  std::ranges::sort(keys);
  Order shuffled;
  shuffled.reserve(order.size());
  for (const auto& [key, at] : keys)
    shuffled.push_back(std::move(order[at]));
  order = std::move(shuffled);
}

bool is_ipv6(const Address& address) {
  return address.str().starts_with('[');
}

void drop_duplicates(std::vector<Address>& addresses) {
  absl::flat_hash_set<Address> seen;
  std::erase_if(addresses, [&](const Address& address) { return !seen.insert(address).second; });
}

}  // namespace

std::vector<Address> flatten(const Endpoints& endpoints, Shuffle shuffle, std::uint64_t seed) {
  Order order = weigh(endpoints, WeightRule::kShare);
  if (shuffle == Shuffle::kEvenly) shuffle_evenly(order, seed);
  if (shuffle == Shuffle::kByWeight) shuffle_by_weight(order, seed);
  std::vector<Address> addresses;
  addresses.reserve(order.size());
  for (const WeighedEndpoint& one : order)
    std::ranges::copy(one.endpoint->addresses, std::back_inserter(addresses));
  return addresses;
}

std::vector<Address> interleave_families(std::vector<Address> addresses) {
  if (addresses.size() < 2) return addresses;
  drop_duplicates(addresses);
  const bool first_family = is_ipv6(addresses.front());
  const auto others = std::ranges::stable_partition(
      addresses, [&](const Address& address) { return is_ipv6(address) == first_family; });
  auto other = others.begin();
  std::vector<Address> interleaved;
  interleaved.reserve(addresses.size());
  for (auto one = addresses.begin(); one != others.begin(); ++one) {
    interleaved.push_back(std::move(*one));
    if (other != others.end()) interleaved.push_back(std::move(*other++));
  }
  std::ranges::move(other, others.end(), std::back_inserter(interleaved));
  return interleaved;
}

}  // namespace signalbox::lb
