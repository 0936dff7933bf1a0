// SPDX-License-Identifier: Apache-2.0
//
// LatencyHistogram — times of calls in nanoseconds, with an error of at most 1/128 (0.8 %).
//
//   time in ns ─▶ [record] ─▶ buckets ─▶ [percentile, merge] ─▶ LoadReport, HdrHistogram log
//
// The buckets are those of HdrHistogram with a lowest value of 1, two significant digits and a
// highest value of 2^42 - 1: values below 256 have a bucket each, and every power of two above is
// cut into 128 buckets. A bucket's number is HdrHistogram's index of counts. Merging adds bucket by
// bucket, so merged files equal one run of all values.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace signalbox::tools {

class LatencyHistogram {
 public:
  static constexpr unsigned kSubBucketBits = 7;
  static constexpr std::uint64_t kSubBuckets = 1U << kSubBucketBits;
  /// 73 minutes. A longer time is recorded as this one; max() and sum() keep the real value.
  static constexpr std::uint64_t kHighest = (std::uint64_t{1} << 42) - 1;
  static constexpr std::size_t kBuckets = 2 * kSubBuckets + (42 - 8) * kSubBuckets;

  static std::size_t bucket_of(std::uint64_t value);
  static std::uint64_t lowest_of(std::size_t bucket);   ///< The smallest value of the bucket.
  static std::uint64_t highest_of(std::size_t bucket);  ///< The greatest value of the bucket.

  /// Never allocates.
  void record(std::uint64_t value) { record_many(value, 1); }

  void record_many(std::uint64_t value, std::uint64_t times);

  void merge(const LatencyHistogram& other);

  /// To read a histogram from a file, call add_bucket() for each bucket, and then add_extremes()
  /// once: buckets hold rounded values, so they do not give min, max and sum.
  void add_bucket(std::size_t bucket, std::uint64_t times);
  void add_extremes(std::uint64_t min, std::uint64_t max, std::uint64_t sum);

  std::uint64_t count() const { return count_; }

  std::uint64_t min() const { return count_ == 0 ? 0 : min_; }  ///< Exact.

  std::uint64_t max() const { return max_; }  ///< Exact.

  std::uint64_t sum() const { return sum_; }  ///< Exact, up to 584 years.

  /// The smallest recorded value that at least `percent` of the values do not exceed, rounded up to
  /// its bucket's end or to max(), if that is less; 0 without values.
  /// Precondition: 0 ≤ percent ≤ 100.
  std::uint64_t percentile(double percent) const;

  /// The number of recorded values in each bucket.
  std::span<const std::uint64_t> counts() const { return counts_; }

  bool operator==(const LatencyHistogram&) const = default;

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t min_ = ~std::uint64_t{0};
  std::uint64_t max_ = 0;
  std::uint64_t sum_ = 0;
};

}  // namespace signalbox::tools
