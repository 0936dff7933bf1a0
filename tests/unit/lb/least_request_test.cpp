// SPDX-License-Identifier: Apache-2.0
//
// least_request beyond gRFC A48. tests/spec/a48_least_request_test has the rules of A48.
#include "lb/leaf/least_request.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/property.hpp"
#include "tests/unit/lb/least_request_harness.hpp"

namespace signalbox::lb {
namespace {

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("least_request: a retry passes over the endpoints that its call has tried",
          "[lb][least_request][retry]") {
  const auto size = GENERATE(2, 5);
  LeastRequestHarness leaf(size == 2 ? Strings{"a", "b"} : Strings{"a", "b", "c", "d", "e"});
  const TriedAddresses tried = size == 2 ? TriedAddresses{Address("a")}
                                         : TriedAddresses{Address("a"), Address("c"), Address("e")};
  const auto retry = [&](std::uint64_t seed, const TriedAddresses& over) {
    const PickResult result = leaf.published.back().picker->pick({.seed = seed, .tried = &over});
    return std::get<Complete>(result.outcome).connection->address();
  };
  leaf.begin(seed_that_draws("bb"));  // Of two endpoints, b has this call, so a is less busy.
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    const Address to = retry(seed, tried);
    CAPTURE(seed, to.str());
    CHECK(std::ranges::find(tried, to) == tried.end());
  }
  const TriedAddresses all{Address("a"), Address("b"), Address("c"), Address("d"), Address("e")};
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    CHECK(retry(seed, all).str() == leaf.where(seed));
}

TEST_CASE("least_request: another number of draws is another picker", "[lb][least_request][A48]") {
  LeastRequestHarness leaf({"a", "b"});
  const PickerPtr before = leaf.published.back().picker;
  CHECK(leaf.update({"a", "b"}, of_choices(2)).size() == 1);  // The answer "applied" alone.
  leaf.update({"a", "b"}, of_choices(3));
  leaf.step(RebuildDue{});
  CHECK(leaf.published.back().picker != before);
}

TEST_CASE("least_request: a failure says how many failed, and why the last did",
          "[lb][least_request][A61]") {
  LeafHarness leaf(make_leaf(LeastRequestConfig{}, PolicyContext{PolicyPath{"p"}, 1, nullptr}));
  leaf.update({"a", "b"}, of_choices(2));
  leaf.fail("a");
  leaf.fail("b");
  CHECK(leaf.pick() == "fail: least_request: all 2 endpoints failed; last error: b: refused by b");
  leaf.update({}, of_choices(2));
  leaf.step(RebuildDue{});
  CHECK(leaf.pick() == "fail: least_request: no endpoints");
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

}  // namespace signalbox::lb
