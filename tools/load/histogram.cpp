// SPDX-License-Identifier: Apache-2.0
#include "tools/load/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace signalbox::tools {
namespace {

constexpr std::uint64_t kExact = 2 * LatencyHistogram::kSubBuckets;  // Values below: a bucket each.
constexpr unsigned kExactBits = LatencyHistogram::kSubBucketBits + 1;

}  // namespace

std::size_t LatencyHistogram::bucket_of(std::uint64_t value) {
  value = std::min(value, kHighest);
  if (value < kExact) return value;
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - kExactBits;  // At least 1.
  return shift * kSubBuckets + (value >> shift);
}

std::uint64_t LatencyHistogram::lowest_of(std::size_t bucket) {
  if (bucket < kExact) return bucket;
  const std::uint64_t shift = bucket / kSubBuckets - 1;
  return (bucket - shift * kSubBuckets) << shift;
}

std::uint64_t LatencyHistogram::highest_of(std::size_t bucket) {
  if (bucket < kExact) return bucket;
  const std::uint64_t shift = bucket / kSubBuckets - 1;
  return ((bucket - shift * kSubBuckets + 1) << shift) - 1;
}

void LatencyHistogram::record_many(std::uint64_t value, std::uint64_t times) {
  if (times == 0) return;
  counts_[bucket_of(value)] += times;
  count_ += times;
  sum_ += value * times;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i)
    counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void LatencyHistogram::add_bucket(std::size_t bucket, std::uint64_t times) {
  counts_[bucket] += times;
  count_ += times;
}

void LatencyHistogram::add_extremes(std::uint64_t min, std::uint64_t max, std::uint64_t sum) {
  sum_ += sum;
  min_ = std::min(min_, min);
  max_ = std::max(max_, max);
}

std::uint64_t LatencyHistogram::percentile(double percent) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<std::uint64_t>(
      std::max(1.0, std::ceil(percent / 100.0 * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= wanted) return std::min(highest_of(i), max_);
  }
  return max_;
}

}  // namespace signalbox::tools
