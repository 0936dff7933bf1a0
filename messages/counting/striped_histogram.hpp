// SPDX-License-Identifier: Apache-2.0
//
// StripedHistogram — how often durations fell between bounds, counted from many threads.
//
//   data-plane threads ─▶ record() on the stripe of the calling thread ─▶ counts() by the collector
//
// The stripes are those of striped.hpp. With the default bounds a stripe is two cache lines. The
// number of bounds is chosen at run time, so that a program pays for gRPC's 41 bounds only if it
// asks for them.

#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "messages/counting/striped.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// The upper bounds of a histogram's buckets, rising; each bound belongs to its bucket. They must
/// outlive the histogram.
using DurationBounds = std::span<const Duration>;

/// The bounds of latencies unless the program asks for gRPC's. They are few, because each bound is
/// one more time series for each cluster with measured calls.
inline constexpr std::array<Duration, 14> kLatencyBounds{std::chrono::microseconds(500),
                                                         std::chrono::milliseconds(1),
                                                         std::chrono::microseconds(2'500),
                                                         std::chrono::milliseconds(5),
                                                         std::chrono::milliseconds(10),
                                                         std::chrono::milliseconds(25),
                                                         std::chrono::milliseconds(50),
                                                         std::chrono::milliseconds(100),
                                                         std::chrono::milliseconds(250),
                                                         std::chrono::milliseconds(500),
                                                         std::chrono::seconds(1),
                                                         std::chrono::milliseconds(2'500),
                                                         std::chrono::seconds(5),
                                                         std::chrono::seconds(10)};

/// Counts for each bucket, not cumulative. The last bucket is above all bounds.
struct DurationCounts {
  std::vector<std::int64_t> buckets;
  Duration sum{};
};

class StripedHistogram {
 public:
  explicit StripedHistogram(DurationBounds bounds = kLatencyBounds)
      : bounds_(bounds),
        stride_((bounds.size() + 2 + kPerLine - 1) / kPerLine),
        lines_(std::make_unique<Line[]>(stride_ * kStripes)) {}

  /// A negative duration counts as zero.
  void record(Duration duration) const {
    duration = std::max(duration, Duration::zero());
    std::size_t bucket = 0;
    while (bucket < bounds_.size() && duration > bounds_[bucket])
      ++bucket;
    const std::size_t stripe = this_thread_stripe();
    add_in_stripe(cell(stripe, kSum), stripe, duration.count());
    add_in_stripe(cell(stripe, kFirstBucket + bucket), stripe, 1);
  }

  DurationBounds bounds() const { return bounds_; }

  DurationCounts counts() const {
    DurationCounts result;
    for (std::size_t bucket = 0; bucket <= bounds_.size(); ++bucket)
      result.buckets.push_back(sum(kFirstBucket + bucket));
    result.sum = Duration(sum(kSum));
    return result;
  }

 private:
  static constexpr std::size_t kPerLine = kCacheLine / sizeof(std::atomic<std::int64_t>);
  static constexpr std::size_t kSum = 0;
  static constexpr std::size_t kFirstBucket = 1;

  struct alignas(kCacheLine) Line {
    std::array<std::atomic<std::int64_t>, kPerLine> values{};
  };

  std::atomic<std::int64_t>& cell(std::size_t stripe, std::size_t index) const {
    return lines_[stripe * stride_ + index / kPerLine].values[index % kPerLine];
  }

  std::int64_t sum(std::size_t index) const {
    std::int64_t total = 0;
    for (std::size_t stripe = 0; stripe < kStripes; ++stripe)
      total += cell(stripe, index).load(std::memory_order_acquire);
    return total;
  }

  DurationBounds bounds_;
  std::size_t stride_;  ///< Cache lines of a stripe.
  std::unique_ptr<Line[]> lines_;
};

}  // namespace signalbox
