// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/stride_scheduler.hpp"

#include <algorithm>
#include <cmath>

namespace signalbox::lb {
namespace {

// A weight above or below these multiples of the mean is limited to them. Fewer weights than
// kFewestWeights are not used.
constexpr double kMostOfMean = 10;
constexpr double kLeastOfMean = 0.1;
constexpr std::size_t kFewestWeights = 2;

}  // namespace

StrideScheduler::StrideScheduler(std::span<const double> weights)
    : weights_(weights.size(), kFullWeight) {
  const auto known = static_cast<std::size_t>(
      std::ranges::count_if(weights, [](double weight) { return weight > 0; }));
  if (known < kFewestWeights) return;
  // Each weight is divided before it is added, because the sum of finite weights may be infinite.
  double mean = 0;
  for (const double weight : weights)
    mean += weight / static_cast<double>(known);
  const double heaviest = std::min(std::ranges::max(weights), mean * kMostOfMean);
  const double lightest = mean * kLeastOfMean;
  if (lightest <= 0) return;  // The weights are so small that the limit is 0.
  is_round_robin_ = false;
  for (std::size_t at = 0; at < weights.size(); ++at) {
    const double weight =
        weights[at] > 0 ? std::clamp(weights[at], std::min(lightest, heaviest), heaviest) : mean;
    const double scaled = std::round(weight / heaviest * kFullWeight);
    weights_[at] = static_cast<std::uint16_t>(std::clamp(scaled, 1.0, double{kFullWeight}));
  }
}

}  // namespace signalbox::lb
