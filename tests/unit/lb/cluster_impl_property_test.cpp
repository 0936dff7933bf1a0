// SPDX-License-Identifier: Apache-2.0
//
// Properties of drops and limits, for random configurations and many calls.
#include <array>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/tree/cluster_impl_picker.hpp"
#include "messages/pick.hpp"
#include "tests/support/property.hpp"

namespace signalbox::lb {
namespace {

constexpr std::uint64_t kMillion = 1'000'000;

CallRulesPtr dropping(const std::vector<std::uint32_t>& shares) {
  auto rules = std::make_shared<CallRules>();
  for (const std::uint32_t share : shares) {
    rules->drops.push_back(
        {share, absl::UnavailableError("dropped"), std::make_shared<const EventCount>()});
  }
  rules->gate = std::make_shared<const RequestGate>(
      std::make_shared<const RequestLimit>(), 1, ClusterName("c"), nullptr);
  return rules;
}

/// The sum of (seen - expected)² / expected. `expected` assumes independent rows and columns.
template <std::size_t Rows, std::size_t Columns>
double chi_square(const std::array<std::array<double, Columns>, Rows>& seen) {
  std::array<double, Rows> rows{};
  std::array<double, Columns> columns{};
  double all = 0;
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t c = 0; c < Columns; ++c) {
      rows[r] += seen[r][c];
      columns[c] += seen[r][c];
      all += seen[r][c];
    }
  }
  double sum = 0;
  for (std::size_t r = 0; r < Rows; ++r) {
    for (std::size_t c = 0; c < Columns; ++c) {
      const double expected = rows[r] * columns[c] / all;
      sum += (seen[r][c] - expected) * (seen[r][c] - expected) / expected;
    }
  }
  return sum;
}

/// The seed of a call: as the drop-in channel makes it (`spread`), or the number of the call.
std::uint64_t seed_of(std::uint64_t call, bool spread) {
  return spread ? call * 0x9e3779b97f4a7c15ULL : call;
}

}  // namespace

TEST_CASE("cluster_impl: each category drops its share of what the others left",
          "[lb][cluster_impl][property][A37-27][A37-30][S5]") {
  CHECK(test::holds("shares are right within five standard deviations", 1'000, [] {
    const auto shares = *rc::gen::container<std::vector<std::uint32_t>>(
        3, rc::gen::inRange<std::uint32_t>(0, kMillion + 1));
    const auto begin = *rc::gen::arbitrary<std::uint64_t>();
    const CallRulesPtr rules = dropping(shares);
    const PickerPtr picker = make_cluster_impl_picker(make_queue_picker(), rules);
    constexpr double kCalls = 2'000;
    double left = kCalls;
    for (std::uint64_t call = 0; call < static_cast<std::uint64_t>(kCalls); ++call)
      picker->pick({.seed = begin + seed_of(call, true)});
    for (const CallRules::Drop& drop : rules->drops) {
      const double share = static_cast<double>(drop.per_million) / static_cast<double>(kMillion);
      const auto dropped = static_cast<double>(drop.count->sum(0));
      const double deviation = std::sqrt(left * share * (1 - share));
      RC_ASSERT(std::abs(dropped - left * share) <= 5 * deviation + 3);
      left -= dropped;
    }
  }));
}

// If the draws are independent, a chi-square exceeds its bound once in ten thousand.
TEST_CASE("cluster_impl: what is dropped says nothing of locality, endpoint and other categories",
          "[lb][cluster_impl][property][A37-27][S5]") {
  const bool spread = GENERATE(true, false);
  std::array<std::array<double, 4>, 2> by_locality{};
  std::array<std::array<double, 5>, 2> by_endpoint{};
  std::array<std::array<double, 2>, 2> by_category{};
  std::array<std::array<double, 3>, 2> by_cluster{};
  for (std::uint64_t call = 0; call < 100'000; ++call) {
    const std::uint64_t seed = seed_of(call, spread);
    const std::size_t dropped = draw_below(seed, Salt::kDrop, kMillion, 0) < 300'000 ? 1 : 0;
    const std::size_t other = draw_below(seed, Salt::kDrop, kMillion, 1) < 300'000 ? 1 : 0;
    ++by_locality[dropped][draw_below(seed, Salt::kLocality, 4)];
    ++by_endpoint[dropped][draw_below(seed, Salt::kEndpoint, 5)];
    ++by_cluster[dropped][draw_below(seed, Salt::kWeightedCluster, 3)];
    ++by_category[dropped][other];
  }
  CHECK(chi_square(by_locality) < 21.1);
  CHECK(chi_square(by_endpoint) < 23.5);
  CHECK(chi_square(by_cluster) < 18.4);
  CHECK(chi_square(by_category) < 15.1);
}

TEST_CASE("request_limit: is exact however calls come, go, and limits change",
          "[lb][cluster_impl][property][A32][A37-29][S5]") {
  CHECK(test::holds("a call is let in exactly if fewer than may be", 1'000, [] {
    const RequestLimit limit;
    std::int64_t in_flight = 0;
    auto most = *rc::gen::inRange<std::uint32_t>(0, 400);
    const auto steps = *rc::gen::container<std::vector<std::uint32_t>>(
        300, rc::gen::inRange<std::uint32_t>(0, 400));
    for (const std::uint32_t step : steps) {
      if (step % 16 == 0) {
        most = step;
      } else if (step % 16 < 10) {
        for (std::uint32_t i = 0; i < step / 16; ++i) {
          const bool taken = limit.take(most);
          RC_ASSERT(taken == (in_flight < std::int64_t{most}));
          if (taken) ++in_flight;
        }
      } else {
        for (std::uint32_t i = 0; i < step / 16 && in_flight > 0; ++i, --in_flight)
          limit.put_back(most);
      }
      RC_ASSERT(limit.in_flight() == in_flight);
    }
  }));
}

}  // namespace signalbox::lb
