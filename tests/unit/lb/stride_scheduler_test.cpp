// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/stride_scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/property.hpp"

namespace signalbox::lb {
namespace {

using Weights = std::vector<double>;

// The uses of each endpoint in a whole period: 65,535 rounds from `begin` on.
std::vector<std::uint64_t> uses_of(const StrideScheduler& scheduler, std::uint32_t begin = 0) {
  std::vector<std::uint64_t> uses(scheduler.size());
  StrideScheduler::Turn turn{0, begin};
  while (turn.round - begin < StrideScheduler::kFullWeight) {
    const auto choice = scheduler.pick(turn);
    // The last pick of the period may already belong to the next.
    const bool wraps = choice.next.round - begin >= StrideScheduler::kFullWeight;
    if (wraps && choice.endpoint < choice.next.endpoint && choice.next.endpoint != 0) break;
    ++uses[choice.endpoint];
    turn = choice.next;
  }
  return uses;
}

}  // namespace

TEST_CASE("stride_scheduler: fewer than two weights are round_robin", "[lb][wrr][A58]") {
  const auto weights =
      GENERATE(values<Weights>({{0}, {7}, {0, 0, 0}, {0, 7, 0}, {5e-324, 5e-324}}));
  const StrideScheduler scheduler(weights);
  CHECK_FALSE(scheduler.has_weights());
  StrideScheduler::Turn turn{0, 12};
  for (std::size_t step = 0; step < 20; ++step) {
    const auto choice = scheduler.pick(turn);
    REQUIRE(choice.endpoint == step % weights.size());
    turn = choice.next;
  }
}

TEST_CASE("stride_scheduler: the heaviest endpoint is used in every round", "[lb][wrr][A58]") {
  const StrideScheduler scheduler(Weights{2, 4, 1});
  CHECK(scheduler.has_weights());
  CHECK(scheduler.weight(1) == StrideScheduler::kFullWeight);
  CHECK(scheduler.weight(0) == 32'768);
  CHECK(scheduler.weight(2) == 16'384);
}

TEST_CASE("stride_scheduler: an unknown weight is the mean of the known", "[lb][wrr][A58]") {
  const StrideScheduler scheduler(Weights{0, 2, 4});
  CHECK(scheduler.weight(0) == std::lround(StrideScheduler::kFullWeight * 3.0 / 4.0));
}

TEST_CASE("stride_scheduler: factors scale the limited weights, and the mean",
          "[lb][wrr][A100-4]") {
  const Weights factors{1, 0.5, 0.01};
  const StrideScheduler alone(Weights{0, 7, 0}, factors);
  CHECK_FALSE(alone.has_weights());
  CHECK(alone.weight(0) == StrideScheduler::kFullWeight);
  CHECK(alone.weight(1) == 32'768);
  CHECK(alone.weight(2) == 655);
  // The last endpoint has no weight of its own, so it has its factor times the mean weight, 3.
  const StrideScheduler both(Weights{4, 2, 0}, factors);
  CHECK(both.has_weights());
  CHECK(both.weight(1) == std::lround(StrideScheduler::kFullWeight / 4.0));
  CHECK(both.weight(2) == std::lround(StrideScheduler::kFullWeight * 0.01 * 3 / 4));
  // Weights are raised to a tenth of the mean before factors apply: here the first two weights
  // become a thirtieth of the last.
  CHECK(StrideScheduler(Weights{5e-324, 5e-324, 1e308}, factors).weight(2) ==
        std::lround(StrideScheduler::kFullWeight * 0.3));
}

TEST_CASE("stride_scheduler: a weight counts between a tenth and ten times the mean", "[lb][wrr]") {
  Weights weights(100, 1.0);
  weights[0] = 1e12;
  weights[1] = 1e-12;
  const StrideScheduler scheduler(weights);
  CHECK(scheduler.weight(0) == StrideScheduler::kFullWeight);
  for (std::size_t at = 1; at < weights.size(); ++at)
    CHECK(scheduler.weight(at) == 655);  // Weights are kept within 0.1 and 10 times the mean.
  const StrideScheduler huge(Weights{1e308, 1e308, 1e308, 5e307});
  CHECK(huge.weight(3) == 32'768);
}

TEST_CASE("stride_scheduler: neighbours of equal weight are used in different rounds",
          "[lb][wrr][A58]") {
  const StrideScheduler scheduler(std::vector<double>{1, 1, 2});
  StrideScheduler::Turn turn;
  std::size_t before = 2;
  int together = 0;
  for (int pick = 0; pick < 1'000; ++pick) {
    const StrideScheduler::Choice choice = scheduler.pick(turn);
    if (before == 0 && choice.endpoint == 1) ++together;
    before = choice.endpoint;
    turn = choice.next;
  }
  CHECK(together <= 10);
}

TEST_CASE("stride_scheduler: an endpoint with a tiny factor is used, too", "[lb][wrr][A100-4]") {
  const StrideScheduler scheduler(std::vector<double>{1, 100}, std::vector<double>{1e-4, 1});
  CHECK(scheduler.weight(0) == 1);
}

TEST_CASE("stride_scheduler: shares follow weights within 0.5 %", "[lb][wrr][A58][property]") {
  // The weights are within the limits around the mean. Shares in a whole period are exact but for
  // rounding.
  CHECK(test::holds("shares", 60, [](const std::vector<std::uint16_t>& any) {
    if (any.size() < 2) return;
    Weights weights;
    double sum = 0;
    for (std::size_t at = 0; at < std::min<std::size_t>(any.size(), 12); ++at) {
      weights.push_back(100.0 + any[at] % 700);
      sum += weights.back();
    }
    const StrideScheduler scheduler(weights);
    const auto uses = uses_of(scheduler, any[0]);
    double all = 0;
    for (const std::uint64_t count : uses)
      all += static_cast<double>(count);
    for (std::size_t at = 0; at < weights.size(); ++at) {
      const double exact = weights[at] / sum;
      RC_ASSERT(std::abs(static_cast<double>(uses[at]) / all - exact) < 0.005 * exact);
    }
  }));
}

TEST_CASE("stride_scheduler: short runs have the shares too", "[lb][wrr][A58]") {
  // The endpoint with the largest weight has a use in each round, the others in proportion. In 300
  // rounds from any place on, each endpoint misses its share by at most two uses.
  const Weights weights{10, 20, 30, 40};
  const StrideScheduler scheduler(weights);
  for (const std::uint32_t begin : {0U, 17U, 4'294'967'000U}) {
    StrideScheduler::Turn turn{0, begin};
    std::vector<int> uses(4);
    while (turn.round - begin < 300) {
      const auto choice = scheduler.pick(turn);
      ++uses[choice.endpoint];
      turn = choice.next;
    }
    for (std::size_t at = 0; at < weights.size(); ++at) {
      CAPTURE(begin, at);
      CHECK(std::abs(uses[at] - 300 * weights[at] / 40) <= 2);
    }
  }
}

TEST_CASE("stride_scheduler: 100,000 random sets of weights always find an endpoint",
          "[lb][wrr][property]") {
  CHECK(
      test::holds("total", 100'000, [](const std::vector<std::uint8_t>& any, std::uint32_t round) {
        if (any.empty()) return;
        const Weights weights(any.begin(), any.end());
        const StrideScheduler scheduler(weights);
        const auto endpoint = static_cast<std::uint32_t>(round % weights.size());
        const auto choice = scheduler.pick({endpoint, round});
        RC_ASSERT(choice.endpoint < weights.size());
        RC_ASSERT(choice.next.endpoint < weights.size());
        RC_ASSERT(choice.next.round - round <= 1U);
      }));
}

}  // namespace signalbox::lb
