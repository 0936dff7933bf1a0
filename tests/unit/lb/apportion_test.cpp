// SPDX-License-Identifier: Apache-2.0
#include "lb/health/apportion.hpp"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/property.hpp"

namespace signalbox::lb {
namespace {

using Shares = std::vector<CallShare>;
using Weights = std::vector<std::uint64_t>;

TEST_CASE("apportion: what rounding leaves goes to those that lost most", "[lb][apportion]") {
  CHECK(apportion(100, Weights{1, 1, 1}) == Shares{34, 33, 33});
  CHECK(apportion(100, Weights{1, 2, 3}) == Shares{17, 33, 50});
  CHECK(apportion(10, Weights{0, 1, 0}) == Shares{0, 10, 0});
  CHECK(apportion(10, Weights{0, 0}) == Shares{0, 0});
  CHECK(apportion(0, Weights{1, 2}) == Shares{0, 0});
  CHECK(apportion(kAllCalls, Weights{UINT64_MAX, UINT64_MAX}) == Shares{500'000, 500'000});
}

TEST_CASE("apportion: parts sum up, and differ from the exact ones by less than one",
          "[lb][apportion][property]") {
  const auto is_exact = [](const std::vector<std::uint16_t>& any) {
    const Weights weights(any.begin(), any.end());
    const auto sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
    const Shares parts = apportion(kAllCalls, weights);
    const auto total = std::accumulate(parts.begin(), parts.end(), CallShare{0});
    RC_ASSERT(total == (sum == 0 ? 0 : kAllCalls));
    for (std::size_t i = 0; i < parts.size() && sum > 0; ++i) {
      const double exact = static_cast<double>(weights[i]) * kAllCalls / static_cast<double>(sum);
      RC_ASSERT(std::abs(exact - parts[i]) < 1 + 1e-6);
    }
  };
  CHECK(test::holds("apportioned exactly", 500, is_exact));
}

}  // namespace
}  // namespace signalbox::lb
