// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/least_request.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <catch2/catch.hpp>

#include "tests/support/property.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {
namespace {

using Strings = std::vector<std::string>;

LbConfigPtr of_choices(std::uint32_t count) {
  return make_lb_config(LeastRequestConfig{count});
}

/// A policy with calls that the test begins and ends.
class Harness : public LeafHarness {
 public:
  explicit Harness(const Strings& endpoints, std::uint32_t choices = 2)
      : LeafHarness(make_leaf(LeastRequestConfig{}, PolicyContext{PolicyPath{"p"}, 1, nullptr})) {
    update(endpoints, of_choices(choices));
    for (const std::string& endpoint : endpoints)
      ready(endpoint);
    step(RebuildDue{});
  }

  PickResult ask(std::uint64_t seed) const { return published.back().picker->pick({.seed = seed}); }

  std::string where(std::uint64_t seed) const { return address_of(ask(seed)); }

  /// Begins a call; it lasts until end_all(), or ends with the first of its endpoint.
  std::string begin(std::uint64_t seed) {
    const PickResult result = ask(seed);
    const std::string address = address_of(result);
    calls.emplace(address, Tracking(result.trackers));
    return address;
  }

  void end_one(const std::string& address) {
    const auto call = calls.find(address);
    call->second.end({0});
    calls.erase(call);
  }

  std::multimap<std::string, Tracking> calls;

 private:
  static std::string address_of(const PickResult& result) {
    return std::get<Complete>(result.outcome).connection->address().str();
  }
};

/// Which of two endpoints, "a" and "b", the first and the second draw of a pick are.
std::string draws(std::uint64_t seed) {
  std::string drawn;
  for (std::uint64_t step = 0; step < 2; ++step)
    drawn += draw_below(seed, Salt::kEndpoint, 2, step) == 0 ? "a" : "b";
  return drawn;
}

std::uint64_t seed_that_draws(const std::string& wanted) {
  std::uint64_t seed = 0;
  while (draws(seed) != wanted)
    ++seed;
  return seed;
}

}  // namespace

TEST_CASE("least_request: takes the less busy of those drawn, of equals the first",
          "[lb][least_request][A48]") {
  Harness leaf({"a", "b"});
  const std::uint64_t first_a = seed_that_draws("ab");
  const std::uint64_t first_b = seed_that_draws("ba");
  CHECK(leaf.where(first_a) == "a");
  CHECK(leaf.where(first_b) == "b");

  CHECK(leaf.begin(first_a) == "a");
  CHECK(leaf.where(first_a) == "b");
  CHECK(leaf.where(first_b) == "b");
  CHECK(leaf.begin(first_a) == "b");
  CHECK(leaf.where(first_a) == "a");
  CHECK(leaf.where(first_b) == "b");
  // An endpoint that is drawn twice is taken however busy it is.
  leaf.begin(seed_that_draws("aa"));
  CHECK(leaf.where(seed_that_draws("aa")) == "a");
  CHECK(leaf.where(first_a) == "b");
}

TEST_CASE("least_request: a retry passes over the endpoints that its call has tried",
          "[lb][least_request][retry]") {
  const auto size = GENERATE(2, 5);
  Harness leaf(size == 2 ? Strings{"a", "b"} : Strings{"a", "b", "c", "d", "e"});
  const TriedAddresses tried = size == 2 ? TriedAddresses{Address("a")}
                                         : TriedAddresses{Address("a"), Address("c"), Address("e")};
  const auto retry = [&](std::uint64_t seed, const TriedAddresses& over) {
    const PickResult result = leaf.published.back().picker->pick({.seed = seed, .tried = &over});
    return std::get<Complete>(result.outcome).connection->address();
  };
  leaf.begin(seed_that_draws("bb"));  // Those that were tried are less busy.
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    const Address to = retry(seed, tried);
    CAPTURE(seed, to.str());
    CHECK(std::ranges::find(tried, to) == tried.end());
  }
  const TriedAddresses all{Address("a"), Address("b"), Address("c"), Address("d"), Address("e")};
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    CHECK(retry(seed, all).str() == leaf.where(seed));
}

TEST_CASE("least_request: a call counts until it ends, once", "[lb][least_request][A48]") {
  Harness leaf({"a", "b"});
  const std::uint64_t seed = seed_that_draws("ab");
  leaf.begin(seed);
  CHECK(leaf.where(seed) == "b");
  leaf.end_one("a");
  CHECK(leaf.where(seed) == "a");
  leaf.begin(seed);
  leaf.calls.clear();  // Never reached its endpoint: gone all the same.
  CHECK(leaf.where(seed) == "a");
}

TEST_CASE("least_request: calls are remembered when connections and lists change",
          "[lb][least_request][A48]") {
  Harness leaf({"a", "b"});
  const std::uint64_t seed = seed_that_draws("ab");
  leaf.begin(seed);
  SECTION("a list that keeps the endpoint") {
    leaf.update({"a", "b", "c"}, of_choices(2));
    leaf.step(RebuildDue{});
    CHECK(leaf.where(seed) == "b");
  }
  SECTION("a connection lost and made again") {
    leaf.idle("a");
    leaf.ready("a");
    leaf.step(RebuildDue{});
    CHECK(leaf.where(seed) == "b");
  }
  SECTION("but not when the endpoint goes and comes again") {
    leaf.update({"b"}, of_choices(2));
    leaf.update({"a", "b"}, of_choices(2));
    leaf.ready("a");
    leaf.step(RebuildDue{});
    CHECK(leaf.where(seed) == "a");
    leaf.calls.clear();
  }
}

TEST_CASE("least_request: each policy counts its own calls", "[lb][least_request][A48]") {
  Harness one({"a", "b"});
  const Harness other({"a", "b"});
  const std::uint64_t seed = seed_that_draws("ab");
  one.begin(seed);
  CHECK(one.where(seed) == "b");
  CHECK(other.where(seed) == "a");
}

TEST_CASE("least_request: draws as often as configured, from two to ten times",
          "[lb][least_request][A48]") {
  const auto [configured, drawn] =
      GENERATE(table<std::uint32_t, int>({{0, 2}, {1, 2}, {2, 2}, {3, 3}, {10, 10}, {99, 10}}));
  Strings endpoints;
  for (int number = 0; number < 50; ++number)
    endpoints.push_back(std::to_string(number));
  Harness leaf(endpoints, configured);
  // All endpoints are busy except the one that only the last draw finds.
  std::uint64_t seed = 0;
  const auto last = [&] {
    std::set<std::uint64_t> seen;
    std::uint64_t at = 0;
    for (std::uint64_t step = 0; step < static_cast<std::uint64_t>(drawn); ++step) {
      at = draw_below(seed, Salt::kEndpoint, endpoints.size(), step);
      if (!seen.insert(at).second) return endpoints.size();
    }
    return static_cast<std::size_t>(at);
  };
  while (last() == endpoints.size())
    ++seed;
  const std::string idle = endpoints[last()];
  for (std::uint64_t other = 0; leaf.calls.size() < 49 || leaf.calls.contains(idle); ++other) {
    const std::string busy = leaf.begin(other);
    if (busy == idle || leaf.calls.count(busy) > 1) leaf.end_one(busy);
  }
  CHECK(leaf.where(seed) == idle);
  // One draw less would not have found that endpoint.
  const std::uint64_t before_last =
      draw_below(seed, Salt::kEndpoint, endpoints.size(), static_cast<std::uint64_t>(drawn) - 2);
  CHECK(endpoints[before_last] != idle);
}

TEST_CASE("least_request: another number of draws is another picker", "[lb][least_request][A48]") {
  Harness leaf({"a", "b"});
  const PickerPtr before = leaf.published.back().picker;
  CHECK(leaf.update({"a", "b"}, of_choices(2)).size() == 1);  // Applied, and nothing else.
  leaf.update({"a", "b"}, of_choices(3));
  leaf.step(RebuildDue{});
  CHECK(leaf.published.back().picker != before);
}

TEST_CASE("least_request: says how it is as round_robin does", "[lb][least_request][A48][A61]") {
  LeafHarness leaf(make_leaf(LeastRequestConfig{}, PolicyContext{PolicyPath{"p"}, 1, nullptr}));
  leaf.update({"a", "b"}, of_choices(2));
  CHECK(leaf.state() == ConnectivityState::kConnecting);
  CHECK(leaf.held == std::set<std::string>{"a", "b"});
  leaf.fail("a");
  CHECK(leaf.state() == ConnectivityState::kConnecting);
  leaf.fail("b");
  CHECK(leaf.state() == ConnectivityState::kTransientFailure);
  CHECK(leaf.pick() == "fail: least_request: all 2 endpoints failed; last error: b: refused by b");
  leaf.ready("b");
  CHECK(leaf.state() == ConnectivityState::kReady);
  CHECK(leaf.pick() == "b");
  leaf.unhealthy("b");
  CHECK(leaf.state() == ConnectivityState::kTransientFailure);
  CHECK(leaf.held.contains("b"));
  leaf.update({}, of_choices(2));
  leaf.step(RebuildDue{});
  CHECK(leaf.pick() == "fail: least_request: no endpoints");
}

TEST_CASE("least_request: idle endpoints get equal shares", "[lb][least_request][A48][S5]") {
  CHECK(test::holds("equal shares", 1'000, [] {
    const auto count = *rc::gen::inRange(2, 8);
    Strings endpoints;
    for (int number = 0; number < count; ++number)
      endpoints.push_back(std::to_string(number));
    const Harness leaf(endpoints, *rc::gen::inRange<std::uint32_t>(2, 11));
    const auto first = *rc::gen::arbitrary<std::uint64_t>();
    constexpr int kPicks = 500;
    std::map<std::string, int> shares;
    for (int pick = 0; pick < kPicks; ++pick)
      ++shares[leaf.where(first + static_cast<std::uint64_t>(pick))];
    const double share = double{kPicks} / count;
    for (const std::string& endpoint : endpoints)
      RC_ASSERT(std::abs(shares[endpoint] - share) <= 6 * std::sqrt(share));
  }));
}

TEST_CASE("least_request: one endpoint's draws say nothing of the next",
          "[lb][least_request][S5]") {
  CHECK(test::holds("independent draws", 1'000, [] {
    const auto first = *rc::gen::arbitrary<std::uint64_t>();
    const auto step = *rc::gen::inRange<std::uint64_t>(0, 9);
    constexpr std::uint64_t kBins = 5;
    constexpr int kPicks = 2'500;
    std::map<std::pair<std::uint64_t, std::uint64_t>, int> seen;
    for (std::uint64_t seed = first; seed != first + kPicks; ++seed) {
      ++seen[{draw_below(seed, Salt::kEndpoint, kBins, step),
              draw_below(seed, Salt::kEndpoint, kBins, step + 1)}];
    }
    constexpr double kExpected = kPicks / double{kBins * kBins};
    double chi_square = 0;
    for (std::uint64_t a = 0; a < kBins; ++a) {
      for (std::uint64_t b = 0; b < kBins; ++b)
        chi_square += std::pow(seen[{a, b}] - kExpected, 2) / kExpected;
    }
    RC_ASSERT(chi_square < 75);  // 24 degrees of freedom: p ≈ 4e-7 in each case.
  }));
}

TEST_CASE("least_request: a slow endpoint gets less", "[lb][least_request][A48][S5]") {
  Harness leaf({"slow", "a", "b", "c"});
  std::map<std::string, int> begun;
  for (std::uint64_t round = 0; round < 2'000; ++round) {
    const std::string address = leaf.begin(round);
    ++begun[address];
    // The others answer at once; the slow one after eight rounds.
    if (address != "slow") leaf.end_one(address);
    if (round % 8 == 0 && leaf.calls.contains("slow")) leaf.end_one("slow");
  }
  CHECK(begun["slow"] < begun["a"] / 2);
  CHECK(begun["slow"] > 0);
}

}  // namespace signalbox::lb
