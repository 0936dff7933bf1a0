// SPDX-License-Identifier: Apache-2.0
//
// Exact percentiles. All samples are kept, because a benchmark has enough memory for them.

#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace signalbox::bench {

/// The sample at this percentile: at least `percent` % of the samples do not exceed it. 0 without
/// samples. Reorders the samples.
template <class T>
double percentile(std::vector<T>& samples, double percent) {
  if (samples.empty()) return 0;
  const auto rank =
      std::min(samples.size() - 1,
               static_cast<std::size_t>(static_cast<double>(samples.size()) * percent / 100));
  const auto place = samples.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(samples.begin(), place, samples.end());
  return static_cast<double>(*place);
}

}  // namespace signalbox::bench
