// SPDX-License-Identifier: Apache-2.0
#include "lb/health/apportion.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace signalbox::lb {
namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

std::vector<CallShare> apportion(CallShare share, std::span<const std::uint64_t> weights) {
  std::vector<CallShare> parts(weights.size(), 0);
  Wide sum = 0;
  for (const std::uint64_t weight : weights)
    sum += weight;
  if (sum == 0) return parts;
  std::vector<Wide> lost(weights.size());
  CallShare left = share;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Wide exact = Wide{share} * weights[i];
    parts[i] = static_cast<CallShare>(exact / sum);
    lost[i] = exact % sum;
    left -= parts[i];
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return lost[a] > lost[b]; });
  for (std::size_t i = 0; i < left; ++i)
    ++parts[order[i]];  // `left` is less than the number of parts that lost a fraction.
  return parts;
}

}  // namespace signalbox::lb
