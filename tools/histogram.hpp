// SPDX-License-Identifier: Apache-2.0
//
// A log-linear histogram: percentiles of recorded values, in little memory.
//
//   latency in µs ─▶ [record] ─▶ buckets ─▶ [percentile] ─▶ live line, table, JSON
//
// Values below 64 have a bucket each. From 64 on, every power of two is cut into 32 buckets. So a
// percentile is at most 1/32 (3.2 %) above the recorded value, and never below it.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace signalbox::tools {

class Histogram {
 public:
  void record(std::uint64_t value);
  void merge(const Histogram& other);

  std::uint64_t count() const { return count_; }

  std::uint64_t max() const { return max_; }

  /// The smallest recorded value that at least `percent` of the recorded values do not exceed,
  /// rounded up to its bucket's end or to max(), if that is less; 0 if there is no value.
  /// Precondition: 0 ≤ percent ≤ 100.
  std::uint64_t percentile(double percent) const;

 private:
  static constexpr std::size_t kBuckets = 64 + (63 - 5) * 32;

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace signalbox::tools
