// SPDX-License-Identifier: Apache-2.0
#include "tools/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace signalbox::tools {
namespace {

constexpr std::uint64_t kExact = 64;  // Values below have a bucket each.
constexpr unsigned kSubBits = 5;      // 32 buckets for each power of two above.
constexpr std::uint64_t kSubBuckets = 1U << kSubBits;

std::size_t bucket_of(std::uint64_t value) {
  if (value < kExact) return value;
  const auto exponent = static_cast<unsigned>(std::bit_width(value)) - 1;  // At least 6.
  const std::uint64_t sub = (value >> (exponent - kSubBits)) - kSubBuckets;
  return kExact + (exponent - 6) * kSubBuckets + sub;
}

// The greatest value of the bucket.
std::uint64_t end_of(std::size_t bucket) {
  if (bucket < kExact) return bucket;
  const std::uint64_t exponent = (bucket - kExact) / kSubBuckets + 6;
  const std::uint64_t sub = (bucket - kExact) % kSubBuckets;
  return ((kSubBuckets + sub + 1) << (exponent - kSubBits)) - 1;
}

}  // namespace

void Histogram::record(std::uint64_t value) {
  ++buckets_[bucket_of(value)];
  ++count_;
  max_ = std::max(max_, value);
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

std::uint64_t Histogram::percentile(double percent) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<std::uint64_t>(
      std::max(1.0, std::ceil(percent / 100.0 * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return std::min(end_of(i), max_);
  }
  return max_;
}

}  // namespace signalbox::tools
