// SPDX-License-Identifier: Apache-2.0
//
// Envoy's aggregate cluster, in the document's order: health scores, loads and panic, then
// properties of loads.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/health/priority_load.hpp"
#include "tests/support/property.hpp"

namespace signalbox::lb {
namespace {

using Numbers = std::vector<std::uint32_t>;

// One priority of 100 hosts for each number of healthy hosts, as in the document's tables.
std::vector<PriorityHealth> percent(const Numbers& healthy) {
  std::vector<PriorityHealth> priorities;
  for (const std::uint32_t hosts : healthy)
    priorities.push_back({hosts, 0, 100});
  return priorities;
}

Numbers scores(const std::vector<PriorityHealth>& priorities) {
  Numbers scores;
  for (const PriorityHealth& at : priorities)
    scores.push_back(health_score(at.healthy, at.total, at.overprovisioning_factor));
  return scores;
}

Numbers healthy_loads(const std::vector<PriorityLoad>& loads) {
  Numbers sums;
  for (const PriorityLoad& load : loads)
    sums.push_back(load.healthy);
  return sums;
}

Numbers degraded_loads(const std::vector<PriorityLoad>& loads) {
  Numbers sums;
  for (const PriorityLoad& load : loads)
    sums.push_back(load.degraded);
  return sums;
}

std::uint32_t sum(const std::vector<PriorityLoad>& loads) {
  std::uint32_t all = 0;
  for (const PriorityLoad& load : loads)
    all += load.sum();
  return all;
}

// min(100, the sum of the scores), healthy and degraded (ENV-10).
std::uint32_t normalized_total_health(const std::vector<PriorityHealth>& priorities) {
  std::uint32_t sum = 0;
  for (const PriorityHealth& at : priorities) {
    sum += health_score(at.healthy, at.total, at.overprovisioning_factor) +
           health_score(at.degraded, at.total, at.overprovisioning_factor);
  }
  return std::min(100U, sum);
}

// The load of each cluster by the document's own formula (ENV-12, ENV-13). The formula counts only
// healthy hosts, and rounds once for each cluster. `sizes`: the number of priorities of each
// cluster.
Numbers cluster_priority_loads(const std::vector<PriorityHealth>& priorities,
                               const std::vector<std::size_t>& sizes) {
  const Numbers scores_of_all = scores(priorities);
  const std::uint32_t total =
      std::min(100U, std::accumulate(scores_of_all.begin(), scores_of_all.end(), 0U));
  Numbers loads;
  std::uint32_t left = 100;
  auto at = scores_of_all.begin();
  for (const std::size_t size : sizes) {
    const auto end = at + static_cast<std::ptrdiff_t>(size);
    const std::uint32_t score = std::accumulate(at, end, 0U);
    const std::uint32_t load = total == 0 ? 0 : std::min(left, score * 100 / total);
    loads.push_back(load);
    left -= load;
    at = end;
  }
  return loads;
}

TEST_CASE("ENV: a health score is 140 % of the healthy share, at most 100, rounded down",
          "[spec][priority_load][ENV-7][ENV-8]") {
  CHECK(health_score(100, 100, 140) == 100);
  CHECK(health_score(80, 100, 140) == 100);
  CHECK(health_score(72, 100, 140) == 100);
  CHECK(health_score(71, 100, 140) == 99);
  CHECK(health_score(1, 100, 140) == 1);
  CHECK(health_score(0, 100, 140) == 0);
  CHECK(health_score(50, 100, 100) == 50);
  CHECK(health_score(50, 100, 200) == 100);
  CHECK(health_score(UINT64_MAX / 2, UINT64_MAX, 140) == 69);  // Weights may be large.
}

TEST_CASE("ENV: a priority without hosts has no health", "[spec][priority_load][ENV-9]") {
  CHECK(health_score(0, 0, 140) == 0);
  const std::vector<PriorityHealth> priorities{{0, 0, 0}, {5, 0, 5}};
  CHECK(healthy_loads(priority_loads(priorities)) == Numbers{0, 100});
}

TEST_CASE("ENV: weights count in place of hosts", "[spec][priority_load][ENV-9]") {
  // One host of four is healthy, with 7 of the total weight of 10.
  const std::vector<PriorityHealth> priorities{{7, 0, 10}, {1, 0, 1}};
  CHECK(healthy_loads(priority_loads(priorities)) == Numbers{98, 2});
}

struct Row {
  int number;
  Numbers primary;
  Numbers secondary;
  std::uint32_t to_primary;
  std::uint32_t to_secondary;
  Numbers scores;
  Numbers loads;
};

// ENV-22: the rows of the document's table.
const Row kTable[] = {
    {1, {100, 100, 100}, {100, 100}, 100, 0, {100, 100, 100, 100, 100}, {100, 0, 0, 0, 0}},
    {2, {72, 100, 100}, {100, 100}, 100, 0, {100, 100, 100, 100, 100}, {100, 0, 0, 0, 0}},
    {3, {71, 1, 0}, {100, 100}, 100, 0, {99, 1, 0, 100, 100}, {99, 1, 0, 0, 0}},
    {4, {71, 0, 0}, {100, 100}, 99, 1, {99, 0, 0, 100, 100}, {99, 0, 0, 1, 0}},
    {5, {50, 0, 0}, {50, 0}, 70, 30, {70, 0, 0, 70, 0}, {70, 0, 0, 30, 0}},
    {6, {20, 20, 10}, {25, 25}, 70, 30, {28, 28, 14, 35, 35}, {28, 28, 14, 30, 0}},
    {7, {20, 0, 0}, {20, 0}, 50, 50, {28, 0, 0, 28, 0}, {50, 0, 0, 50, 0}},
    {8, {0, 0, 0}, {100, 0}, 0, 100, {0, 0, 0, 100, 0}, {0, 0, 0, 100, 0}},
    {9, {0, 0, 0}, {72, 0}, 0, 100, {0, 0, 0, 100, 0}, {0, 0, 0, 100, 0}},
};

TEST_CASE("ENV: the document's table, to the integer",
          "[spec][priority_load][ENV-5][ENV-11][ENV-12][ENV-13][ENV-14][ENV-22]") {
  for (const Row& row : kTable) {
    INFO("row " << row.number);
    std::vector<PriorityHealth> priorities = percent(row.primary);
    for (const PriorityHealth& at : percent(row.secondary))
      priorities.push_back(at);
    const std::vector<std::size_t> sizes{row.primary.size(), row.secondary.size()};
    CHECK(scores(priorities) == row.scores);
    CHECK(healthy_loads(priority_loads(priorities)) == row.loads);
    CHECK(cluster_priority_loads(priorities, sizes) == Numbers{row.to_primary, row.to_secondary});
  }
}

TEST_CASE("ENV: degraded hosts get what is left, and rounding's rest goes to the first healthy",
          "[spec][priority_load][ENV-15][ENV-16]") {
  const std::vector<PriorityHealth> priorities{{10, 20, 100}, {20, 10, 100}, {10, 0, 100}};
  const auto loads = priority_loads(priorities);
  CHECK(healthy_loads(loads) == Numbers{16, 28, 14});
  CHECK(degraded_loads(loads) == Numbers{28, 14, 0});
}

TEST_CASE("ENV: without a healthy host the rest goes to the first degraded",
          "[spec][priority_load][ENV-15]") {
  const std::vector<PriorityHealth> priorities{{0, 0, 100}, {0, 10, 100}, {0, 20, 100}};
  CHECK(degraded_loads(priority_loads(priorities)) == Numbers{0, 34, 66});
}

TEST_CASE("ENV: healthy hosts that suffice leave nothing to degraded ones",
          "[spec][priority_load][ENV-16]") {
  const std::vector<PriorityHealth> priorities{{72, 28, 100}};
  const auto loads = priority_loads(priorities);
  CHECK(loads == std::vector<PriorityLoad>{{100, 0, false}});
}

TEST_CASE("ENV: where nobody is fit there is no load, unless panic is configured",
          "[spec][priority_load][ENV-17]") {
  const std::vector<PriorityHealth> priorities{{0, 0, 0}, {0, 0, 2}, {0, 0, 1}};
  CHECK(sum(priority_loads(priorities)) == 0);
  const auto loads = priority_loads(priorities, 1);
  CHECK(loads == std::vector<PriorityLoad>{{0, 0, true}, {67, 0, true}, {33, 0, true}});
  // 199 of 200 hosts are 99 %, and the first priority has the rest.
  const std::vector<PriorityHealth> large{{0, 0, 1}, {0, 0, 199}};
  CHECK(healthy_loads(priority_loads(large, 1)) == Numbers{1, 99});
  CHECK(sum(priority_loads(percent({}), 50)) == 0);
  const std::vector<PriorityHealth> empty{{0, 0, 0}};
  CHECK(sum(priority_loads(empty, 50)) == 0);
}

TEST_CASE(
    "ENV: where all scores are 0 and there is no panic, the first with a healthy host has all",
    "[spec][priority_load][ENV-30]") {
  const auto loads = [](std::vector<PriorityHealth> priorities) {
    REQUIRE(normalized_total_health(priorities) == 0);
    return priority_loads(priorities);
  };
  const PriorityLoad none;
  const PriorityLoad healthy{100, 0, false};
  const PriorityLoad degraded{0, 100, false};
  CHECK(loads({{0, 0, 300}, {1, 0, 300}, {2, 0, 300}}) ==
        std::vector<PriorityLoad>{none, healthy, none});
  // Healthy hosts have precedence over degraded ones, whatever their priorities.
  CHECK(loads({{0, 1, 300}, {1, 0, 300}}) == std::vector<PriorityLoad>{none, healthy});
  CHECK(loads({{0, 0, 300}, {0, 1, 300}}) == std::vector<PriorityLoad>{none, degraded});
  CHECK(loads({{0, 0, 300}, {0, 0, 300}}) == std::vector<PriorityLoad>{none, none});
  // A healthy host with a thousandth of the weight also gives a score of 0, and gets all calls.
  CHECK(loads({{1, 0, 1'000, 140, HostNumbers{1, 2}}}) == std::vector<PriorityLoad>{healthy});
}

TEST_CASE(
    "ENV: where every priority panics loads go by health, by numbers only if all scores are 0",
    "[spec][priority_load][ENV-33]") {
  // Envoy's code counts hosts here and would give loads of 50 and 50.
  CHECK(priority_loads(percent({20, 30}), 50) ==
        std::vector<PriorityLoad>{{40, 0, true}, {60, 0, true}});
  CHECK(priority_loads(std::vector<PriorityHealth>{{20, 0, 100}, {60, 0, 300}}, 50) ==
        std::vector<PriorityLoad>{{50, 0, true}, {50, 0, true}});
  CHECK(priority_loads(std::vector<PriorityHealth>{{0, 0, 300}, {1, 0, 900}}, 1) ==
        std::vector<PriorityLoad>{{25, 0, true}, {75, 0, true}});
}

TEST_CASE("ENV: a priority panics below the threshold, while all together are not at 100",
          "[spec][priority_load][ENV-17]") {
  const auto panics = [](const Numbers& healthy, std::uint32_t threshold) {
    std::vector<bool> each;
    for (const PriorityLoad& load : priority_loads(percent(healthy), threshold))
      each.push_back(load.panic);
    return each;
  };
  CHECK(panics({20, 40}, 30) == std::vector<bool>{true, false});
  CHECK(panics({20, 30}, 30) == std::vector<bool>{true, false});
  CHECK(panics({20, 72}, 30) == std::vector<bool>{false, false});  // Total: 100.
  const std::vector<PriorityHealth> with_empty{{0, 0, 0}, {40, 0, 100}};
  CHECK(priority_loads(with_empty, 30)[0].panic);
  CHECK(panics({20, 40}, 0) == std::vector<bool>{false, false});
  CHECK(healthy_loads(priority_loads(percent({20, 40}), 30)) == Numbers{34, 66});
  const std::vector<PriorityHealth> degraded{{10, 30, 100}, {20, 0, 100}};
  CHECK_FALSE(priority_loads(degraded, 40)[0].panic);  // 10 healthy, 30 degraded: 40 are fit.
  CHECK(priority_loads(degraded, 41)[0].panic);
  // Healthy and degraded hosts are added before rounding: 2/3 and 1/3 are 100 %, 1/200 and 1/200
  // are 1 %.
  const std::vector<PriorityHealth> thirds{{2, 1, 3, 20}};
  CHECK(normalized_total_health(thirds) == 19);
  CHECK_FALSE(priority_loads(thirds, 100)[0].panic);
  const std::vector<PriorityHealth> halves{{1, 1, 200, 1'000}};
  CHECK_FALSE(priority_loads(halves, 1)[0].panic);
  CHECK(priority_loads(halves, 2)[0].panic);
}

TEST_CASE("ENV: panic goes by numbers of hosts where health goes by weights",
          "[spec][priority_load][ENV-9][ENV-17]") {
  const std::vector<PriorityHealth> priorities{{1, 0, 100, 140, HostNumbers{1, 2}}, {25, 0, 100}};
  CHECK_FALSE(priority_loads(priorities, 50)[0].panic);
  CHECK(priority_loads(priorities, 51)[0].panic);
  const std::vector<PriorityHealth> nobody{{0, 0, 100, 140, HostNumbers{0, 3}}, {0, 0, 1}};
  CHECK(healthy_loads(priority_loads(nobody, 1)) == Numbers{75, 25});
}

// --- properties ---

rc::Gen<PriorityHealth> any_health() {
  return rc::gen::apply(
      [](std::uint32_t total, std::uint32_t healthy, std::uint32_t degraded) {
        healthy = total == 0 ? 0 : healthy % (total + 1);
        degraded = total == healthy ? 0 : degraded % (total - healthy + 1);
        return PriorityHealth{healthy, degraded, total};
      },
      rc::gen::inRange<std::uint32_t>(0, 500),
      rc::gen::arbitrary<std::uint32_t>(),
      rc::gen::arbitrary<std::uint32_t>());
}

rc::Gen<std::vector<PriorityHealth>> any_row() {
  return rc::gen::mapcat(rc::gen::inRange<std::size_t>(1, 9), [](std::size_t size) {
    return rc::gen::container<std::vector<PriorityHealth>>(size, any_health());
  });
}

TEST_CASE("ENV: loads sum to 100 wherever anybody is fit",
          "[spec][priority_load][ENV-14][ENV-23]") {
  CHECK(test::holds("loads sum to 100", 1'000, [] {
    const auto row = *any_row();
    const bool any_fit = std::ranges::any_of(
        row, [](const PriorityHealth& at) { return at.healthy + at.degraded > 0; });
    RC_ASSERT(sum(priority_loads(row)) == (any_fit ? 100U : 0U));
  }));
}

TEST_CASE("ENV: a healthier priority gets no less, and those below it together no more",
          "[spec][priority_load][ENV-23]") {
  CHECK(test::holds("a healthier priority", 1'000, [] {
    auto row = *any_row();
    for (PriorityHealth& at : row)
      at.degraded = 0;
    const auto which = *rc::gen::inRange<std::size_t>(0, row.size());
    RC_PRE(row[which].healthy < row[which].total);
    const auto before = priority_loads(row);
    ++row[which].healthy;
    const auto after = priority_loads(row);
    const auto below = [&](const std::vector<PriorityLoad>& loads) {
      std::uint32_t all = 0;
      for (std::size_t i = which + 1; i < loads.size(); ++i)
        all += loads[i].healthy;
      return all;
    };
    // The first priority also gets the remainder of rounding, and the remainder may shrink.
    const std::uint32_t rest = static_cast<std::uint32_t>(row.size());
    RC_ASSERT(after[which].healthy + rest >= before[which].healthy);
    RC_ASSERT(below(after) <= below(before) + rest);
  }));
}

TEST_CASE("ENV: a cluster's load is the sum of its priorities', up to rounding",
          "[spec][priority_load][ENV-12][ENV-13][ENV-23]") {
  CHECK(test::holds("a cluster's load", 1'000, [] {
    auto row = *any_row();
    for (PriorityHealth& at : row)
      at.degraded = 0;
    // A total of 0 is left out: ENV-30, its rule, is not in the document.
    RC_PRE(normalized_total_health(row) > 0U);
    const auto first = *rc::gen::inRange<std::size_t>(0, row.size() + 1);
    const std::vector<std::size_t> sizes{first, row.size() - first};
    const auto loads = healthy_loads(priority_loads(row));
    const auto clusters = cluster_priority_loads(row, sizes);
    const auto middle = loads.begin() + static_cast<std::ptrdiff_t>(first);
    const auto rest = static_cast<std::int64_t>(row.size());
    const std::int64_t of_first = std::accumulate(loads.begin(), middle, std::int64_t{0});
    const std::int64_t of_second = std::accumulate(middle, loads.end(), std::int64_t{0});
    RC_ASSERT(std::abs(of_first - clusters[0]) <= rest);
    RC_ASSERT(std::abs(of_second - clusters[1]) <= rest);
  }));
}

TEST_CASE("ENV: loads know numbers of hosts, not which hosts", "[spec][priority_load][ENV-23]") {
  CHECK(test::holds("numbers of hosts", 1'000, [] {
    std::vector<int> hosts = *rc::gen::container<std::vector<int>>(10, rc::gen::inRange(0, 3));
    const auto count = [&] {
      PriorityHealth at;
      for (const int host : hosts) {
        ++at.total;
        at.healthy += host == 0 ? 1U : 0U;
        at.degraded += host == 1 ? 1U : 0U;
      }
      return priority_loads(std::vector<PriorityHealth>{at, {1, 0, 1}});
    };
    const auto before = count();
    std::ranges::sort(hosts);
    RC_ASSERT(count() == before);
  }));
}

}  // namespace
}  // namespace signalbox::lb
