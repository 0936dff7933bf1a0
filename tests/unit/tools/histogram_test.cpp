// SPDX-License-Identifier: Apache-2.0
#include "tools/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::tools {

TEST_CASE("histogram: says 0 of nothing", "[tools][histogram]") {
  const Histogram histogram;
  CHECK(histogram.count() == 0);
  CHECK(histogram.max() == 0);
  CHECK(histogram.percentile(50) == 0);
}

TEST_CASE("histogram: is exact below 64", "[tools][histogram]") {
  Histogram histogram;
  for (std::uint64_t value = 0; value < 64; ++value)
    histogram.record(value);
  CHECK(histogram.percentile(0) == 0);
  CHECK(histogram.percentile(50) == 31);
  CHECK(histogram.percentile(75) == 47);
  CHECK(histogram.percentile(100) == 63);
}

TEST_CASE("histogram: a percentile is never below the recorded value, and at most 1/32 above it",
          "[tools][histogram]") {
  std::mt19937_64 dice(7);
  Histogram histogram;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 20000; ++i) {
    // Every magnitude is as likely.
    values.push_back(dice() >> std::uniform_int_distribution(0, 63)(dice));
    histogram.record(values.back());
  }
  std::sort(values.begin(), values.end());
  const auto percent = GENERATE(1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0);
  const auto rank =
      static_cast<std::size_t>(std::ceil(percent / 100.0 * static_cast<double>(values.size())));
  const std::uint64_t exact = values[rank - 1];
  CHECK(histogram.percentile(percent) >= exact);
  CHECK(histogram.percentile(percent) - exact <= exact / 32);
}

TEST_CASE("histogram: takes the greatest value there is", "[tools][histogram]") {
  Histogram histogram;
  histogram.record(std::numeric_limits<std::uint64_t>::max());
  CHECK(histogram.percentile(99) == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("histogram: merged ones are as one that recorded all", "[tools][histogram]") {
  Histogram left;
  Histogram right;
  Histogram both;
  for (std::uint64_t value = 1; value < 5000; value += 7) {
    (value % 2 == 0 ? left : right).record(value);
    both.record(value);
  }
  left.merge(right);
  CHECK(left.count() == both.count());
  CHECK(left.max() == both.max());
  for (const double percent : {5.0, 50.0, 95.0}) {
    CHECK(left.percentile(percent) == both.percentile(percent));
  }
}

}  // namespace signalbox::tools
