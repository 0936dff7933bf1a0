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

// The weights with A58's limits, as parts of the heaviest. Empty: fewer than two are known, or they
// are too small for these computations.
std::vector<double> limited_weights(std::span<const double> weights) {
  const auto known = static_cast<std::size_t>(
      std::ranges::count_if(weights, [](double weight) { return weight > 0; }));
  if (known < kFewestWeights) return {};
  // Each weight is divided before it is added, because the sum of finite weights may be infinite.
  double mean = 0;
  for (const double weight : weights)
    mean += weight / static_cast<double>(known);
  const double heaviest = std::min(std::ranges::max(weights), mean * kMostOfMean);
  const double lightest = mean * kLeastOfMean;
  if (lightest <= 0) return {};  // The weights are so small that the limit is 0.
  std::vector<double> result;
  result.reserve(weights.size());
  for (const double weight : weights) {
    const double own =
        weight > 0 ? std::clamp(weight, std::min(lightest, heaviest), heaviest) : mean;
    result.push_back(own / heaviest);
  }
  return result;
}

}  // namespace

StrideScheduler::StrideScheduler(std::span<const double> weights, std::span<const double> factors)
    : weights_(weights.size(), kFullWeight) {
  std::vector<double> own = limited_weights(weights);
  has_weights_ = !own.empty();
  if (!has_weights_) {
    if (factors.empty()) return;
    own.assign(weights.size(), 1.0);
  }
  for (std::size_t at = 0; at < factors.size(); ++at)
    own[at] *= factors[at];
  const double heaviest = std::ranges::max(own);
  for (std::size_t at = 0; at < own.size(); ++at) {
    const double scaled = std::round(own[at] / heaviest * kFullWeight);
    weights_[at] = static_cast<std::uint16_t>(std::clamp(scaled, 1.0, double{kFullWeight}));
  }
}

}  // namespace signalbox::lb
