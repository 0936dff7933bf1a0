// SPDX-License-Identifier: Apache-2.0
//
// least_request beyond gRFC A48. tests/spec/a48_least_request_test has the rules of A48.
#include "lb/leaf/least_request.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/independent_draws.hpp"
#include "tests/support/property.hpp"
#include "tests/support/step_log.hpp"
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

// --- active_request_bias ---------------------------------------------------------

namespace {

// A least_request policy over endpoints with these weights, all READY.
class BiasHarness : public LeafHarness {
 public:
  BiasHarness(const std::map<std::string, std::uint32_t>& weights,
              std::optional<double> bias,
              std::uint32_t choices = 2)
      : LeafHarness(make_leaf(LeastRequestConfig{}, PolicyContext{PolicyPath{"p"}, 1, nullptr})) {
    Locality locality;
    for (const auto& [name, weight] : weights)
      locality.endpoints.push_back({.addresses = {Address(name)}, .weight = weight});
    Endpoints endpoints;
    endpoints.priorities.push_back({{std::make_shared<const Locality>(std::move(locality))}});
    step(ConfigUpdated{1,
                       make_lb_config(LeastRequestConfig{choices, std::nullopt, bias}),
                       nullptr,
                       std::make_shared<const Endpoints>(std::move(endpoints))});
    for (const auto& [name, weight] : weights)
      ready(name);
    step(RebuildDue{});
  }

  PickResult ask(std::uint64_t seed) const {
    return published.back().picker->pick({.seed = seed * 0x9e3779b97f4a7c15ULL});
  }

  std::string where(std::uint64_t seed) const {
    const PickResult result = published.back().picker->pick({.seed = seed});
    return std::get<Complete>(result.outcome).connection->address().str();
  }

  // The explanation of the call of where().
  std::set<std::string> steps(std::uint64_t seed) const {
    const auto lines = testing::steps_of(published.back().picker, {.seed = seed});
    return {lines.begin(), lines.end()};
  }

  // Begins calls until the endpoint has `count` of them in flight, and no other has any.
  void load(const std::string& name, int count) {
    for (std::uint64_t seed = 1; count > 0; ++seed) {
      const PickResult result = ask(seed);
      if (std::get<Complete>(result.outcome).connection->address().str() != name) continue;
      calls_.emplace_back(result.trackers);
      --count;
    }
  }

  double share_of(const std::string& name) const {
    int hits = 0;
    for (std::uint64_t seed = 1; seed <= 40'000; ++seed) {
      if (std::get<Complete>(ask(seed).outcome).connection->address().str() == name) ++hits;
    }
    return hits / 40'000.0;
  }

 private:
  std::vector<Tracking> calls_;
};

}  // namespace

TEST_CASE("least_request: without calls in flight, shares follow the weights, whatever the bias",
          "[lb][least_request][ENV-41]") {
  const double bias = GENERATE(0.0, 1.0, 5.0);
  const BiasHarness leaf({{"a", 1}, {"b", 3}}, bias);
  CHECK(leaf.share_of("a") == Approx(0.25).margin(0.01));
}

TEST_CASE("least_request: with bias 0 calls in flight do not count",
          "[lb][least_request][ENV-41]") {
  BiasHarness leaf({{"a", 1}, {"b", 3}}, 0);
  leaf.load("b", 9);
  CHECK(leaf.share_of("a") == Approx(0.25).margin(0.01));
}

TEST_CASE("least_request: the greater the bias, the fewer calls go to a busy endpoint",
          "[lb][least_request][ENV-41]") {
  // The endpoint b is drawn alone in 9 of 16 picks, and beside a in 6. Then it gets a part of
  // 1 / (calls + 1)^bias against 1.
  const double bias = GENERATE(0.5, 1.0, 2.0, 400.0);
  BiasHarness leaf({{"a", 1}, {"b", 3}}, bias);
  leaf.load("b", 3);
  const double part = std::pow(4, -bias);
  CHECK(leaf.share_of("b") == Approx(9.0 / 16 + 6.0 / 16 * part / (1 + part)).margin(0.01));
}

TEST_CASE("least_request: with many draws shares come near Envoy's formula",
          "[lb][least_request][ENV-41]") {
  BiasHarness leaf({{"a", 1}, {"b", 3}}, 1, 10);
  leaf.load("b", 2);
  // Envoy's weights are 1 / 1 and 3 / 3.
  CHECK(leaf.share_of("a") == Approx(0.5).margin(0.06));
}

TEST_CASE(
    "least_request: equal weights are drawn evenly, and the fewest calls win, with a bias too",
    "[lb][least_request][ENV-40]") {
  BiasHarness leaf({{"a", 5}, {"b", 5}}, 0);
  leaf.load("b", 1);
  // Only picks that draw b twice go to b.
  CHECK(leaf.share_of("b") == Approx(0.25).margin(0.01));
}

TEST_CASE("least_request: without a bias the weights of endpoints do not count",
          "[lb][least_request][A48][ENV-40]") {
  const BiasHarness leaf({{"a", 1}, {"b", 99}}, std::nullopt);
  CHECK(leaf.share_of("a") == Approx(0.5).margin(0.01));
}

TEST_CASE("least_request: a new bias is a new picker", "[lb][least_request][ENV-40]") {
  LeastRequestHarness leaf({"a", "b"});
  const PickerPtr before = leaf.published.back().picker;
  leaf.update({"a", "b"}, make_lb_config(LeastRequestConfig{2, std::nullopt, 1.0}));
  leaf.step(RebuildDue{});
  CHECK(leaf.published.back().picker != before);
}

TEST_CASE("least_request: endpoints are drawn independently of the call's other draws",
          "[lb][least_request][ENV-41]") {
  const auto [bias, share] =
      GENERATE(table<std::optional<double>, double>({{std::nullopt, 0.5}, {1.0, 0.25}}));
  const BiasHarness leaf({{"a", 1}, {"b", 3}}, bias);
  test::check_independent(
      Salt::kEndpoint, share, [&](std::uint64_t seed) { return leaf.where(seed) == "a"; });
}

TEST_CASE("least_request: an explanation has the bias and the weights of the drawn endpoints",
          "[lb][least_request][explain][ENV-40]") {
  BiasHarness leaf({{"a", 1}, {"b", 3}}, 1.5);
  leaf.load("b", 1);
  std::set<std::string> steps;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    steps.merge(leaf.steps(seed));
  const std::string why =
      "; by chance, less likely with calls in flight (active_request_bias 1.5), of the 2 drawn by "
      "weight from 2 that are READY; CDS";
  CHECK(steps == std::set<std::string>{
                     "least_request: drew a; 0 calls of this policy's in flight, weight 1; CDS",
                     "least_request: drew b; 1 calls of this policy's in flight, weight 3; CDS",
                     "least_request: a" + why,
                     "least_request: b" + why});

  // With equal weights the bias has no part in the choice.
  const BiasHarness even({{"a", 3}, {"b", 3}}, 1.5);
  steps.clear();
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    steps.merge(even.steps(seed));
  CHECK(steps.contains("least_request: drew a; 0 calls of this policy's in flight; CDS"));
  CHECK(steps.contains(
      "least_request: a; the fewest calls of the 2 drawn from 2 that are READY; CDS"));
  CHECK(steps.size() == 4);
}

TEST_CASE("least_request: an explanation names each drawn endpoint once",
          "[lb][least_request][explain]") {
  LeastRequestHarness leaf({"a", "b", "c"});
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto steps = testing::steps_of(leaf.published.back().picker, {.seed = seed});
    CHECK(std::set(steps.begin(), steps.end()).size() == steps.size());
    CHECK_THAT(steps[0], Catch::StartsWith("least_request: drew "));
    sizes.insert(steps.size());
  }
  // Two draws choose one endpoint or two, and the last step has the choice.
  CHECK(sizes == std::set<std::size_t>{2, 3});

  const LeastRequestHarness alone({"a"});
  CHECK(testing::steps_of(alone.published.back().picker) ==
        Strings{"least_request: a; the only one that is READY; CDS"});
}

}  // namespace signalbox::lb
