// SPDX-License-Identifier: Apache-2.0
#include "tools/load/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/property.hpp"

namespace signalbox::tools {
namespace {

std::vector<std::uint64_t> some_values(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 dice(seed);
  std::uniform_real_distribution<double> exponent(0, 41.9);
  std::vector<std::uint64_t> values(count);
  for (std::uint64_t& value : values)
    value = static_cast<std::uint64_t>(std::exp2(exponent(dice)));
  return values;
}

}  // namespace

TEST_CASE("latency histogram: every bucket begins where the one before ends", "[load][histogram]") {
  CHECK(LatencyHistogram::lowest_of(0) == 0);
  for (std::size_t i = 0; i + 1 < LatencyHistogram::kBuckets; ++i) {
    REQUIRE(LatencyHistogram::highest_of(i) + 1 == LatencyHistogram::lowest_of(i + 1));
    REQUIRE(LatencyHistogram::bucket_of(LatencyHistogram::lowest_of(i)) == i);
    REQUIRE(LatencyHistogram::bucket_of(LatencyHistogram::highest_of(i)) == i);
  }
  CHECK(LatencyHistogram::highest_of(LatencyHistogram::kBuckets - 1) == LatencyHistogram::kHighest);
}

TEST_CASE("latency histogram: a percentile is at most 0.8 % above the value",
          "[load][histogram][property]") {
  CHECK(test::holds("a percentile of any times", 500, [] {
    // The times have any magnitude, so the exponent is drawn first.
    auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint64_t>>(rc::gen::mapcat(
        rc::gen::inRange(0, 42),
        [](int bits) { return rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << bits); })));
    const double percent = *rc::gen::inRange(0, 1001) / 10.0;
    LatencyHistogram histogram;
    for (const std::uint64_t value : values)
      histogram.record(value);
    std::ranges::sort(values);
    const auto count = static_cast<double>(values.size());
    const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(percent / 100 * count)));
    const std::uint64_t exact = values[rank - 1];
    RC_ASSERT(histogram.percentile(percent) >= exact);
    RC_ASSERT(histogram.percentile(percent) <= exact + exact / LatencyHistogram::kSubBuckets);
    RC_ASSERT(histogram.min() == values.front());
    RC_ASSERT(histogram.max() == values.back());
  }));
}

TEST_CASE("latency histogram: merged parts equal one histogram of all", "[load][histogram]") {
  LatencyHistogram whole;
  LatencyHistogram merged;
  for (std::uint64_t part = 0; part < 4; ++part) {
    LatencyHistogram one;
    for (const std::uint64_t value : some_values(part, 500)) {
      one.record(value);
      whole.record(value);
    }
    merged.merge(one);
  }
  CHECK(merged == whole);
}

TEST_CASE("latency histogram: is made again from its buckets and extremes", "[load][histogram]") {
  LatencyHistogram whole;
  for (const std::uint64_t value : some_values(7, 500))
    whole.record(value);
  LatencyHistogram again;
  for (std::size_t i = 0; i < whole.counts().size(); ++i)
    again.add_bucket(i, whole.counts()[i]);
  again.add_extremes(whole.min(), whole.max(), whole.sum());
  CHECK(again == whole);
}

TEST_CASE("latency histogram: a time above the highest keeps its maximum", "[load][histogram]") {
  LatencyHistogram histogram;
  histogram.record(LatencyHistogram::kHighest + 5);
  CHECK(histogram.max() == LatencyHistogram::kHighest + 5);
  CHECK(histogram.counts().back() == 1);
  CHECK(histogram.percentile(100) == LatencyHistogram::kHighest);
}

TEST_CASE("latency histogram: says 0 of nothing", "[load][histogram]") {
  const LatencyHistogram histogram;
  CHECK(histogram.count() == 0);
  CHECK(histogram.min() == 0);
  CHECK(histogram.percentile(99) == 0);
}

}  // namespace signalbox::tools
