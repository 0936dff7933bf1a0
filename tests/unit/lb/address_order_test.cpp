// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/address_order.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/property.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {
namespace {

// One locality for each row: its weight, then the weights of its endpoints "l0e0", "l0e1", …
EndpointsPtr weighted(
    const std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>>& rows) {
  Endpoints slice;
  slice.priorities.emplace_back();
  for (const auto& [weight, endpoints] : rows) {
    Locality locality;
    locality.weight = weight;
    for (const std::uint32_t own : endpoints) {
      Endpoint endpoint;
      endpoint.addresses.emplace_back(
          absl::StrCat("l", slice.priorities[0].localities.size(), "e", locality.endpoints.size()));
      endpoint.weight = own;
      locality.endpoints.push_back(std::move(endpoint));
    }
    slice.priorities[0].localities.push_back(std::make_shared<const Locality>(std::move(locality)));
  }
  return std::make_shared<const Endpoints>(std::move(slice));
}

// The number of seeds, of `runs`, that put each address first.
std::map<std::string, int> firsts(const EndpointsPtr& slice, Shuffle shuffle, int runs) {
  std::map<std::string, int> firsts;
  for (int seed = 0; seed < runs; ++seed)
    ++firsts[flatten(*slice, shuffle, static_cast<std::uint64_t>(seed)).front().str()];
  return firsts;
}

// Six standard deviations of the hits in `runs` draws, if each draw hits with probability `share`.
double margin(int runs, double share) {
  return 6 * std::sqrt(runs * share * (1 - share));
}

}  // namespace

TEST_CASE("address_order: an endpoint comes first as often as its weight says",
          "[lb][pick_first][A113]") {
  constexpr int kRuns = 20'000;
  const auto slice = weighted({{1, {1, 3}}, {3, {5, 5}}});
  const std::map<std::string, double> shares{
      {"l0e0", 1 / 16.0}, {"l0e1", 3 / 16.0}, {"l1e0", 3 / 8.0}, {"l1e1", 3 / 8.0}};
  auto first = firsts(slice, Shuffle::kByWeight, kRuns);
  for (const auto& [address, share] : shares) {
    INFO(address);
    CHECK(std::abs(first[address] - kRuns * share) < margin(kRuns, share));
  }
  // A62 alone ignores weights, so each address is equally likely to be the first.
  first = firsts(slice, Shuffle::kEvenly, kRuns);
  for (const auto& [address, share] : shares)
    CHECK(std::abs(first[address] - kRuns / 4.0) < margin(kRuns, 0.25));
}

TEST_CASE("address_order: the second is drawn by weight among the rest", "[lb][pick_first][A113]") {
  constexpr int kRuns = 20'000;
  const auto slice = weighted({{1, {1, 2, 5}}});
  int behind_third = 0;
  int second_is_first = 0;
  for (int seed = 0; seed < kRuns; ++seed) {
    const auto order = flatten(*slice, Shuffle::kByWeight, static_cast<std::uint64_t>(seed));
    if (order[0].str() != "l0e2") continue;
    ++behind_third;
    if (order[1].str() == "l0e0") ++second_is_first;
  }
  CHECK(std::abs(second_is_first - behind_third / 3.0) < margin(behind_third, 1 / 3.0));
}

// Weights w this large would round nearly every key u^(1/w) to 1, and the order would never change.
TEST_CASE("address_order: weights as large as they come still shuffle", "[lb][pick_first][A113]") {
  const auto slice = weighted({{UINT32_MAX, {UINT32_MAX, UINT32_MAX}}});
  auto first = firsts(slice, Shuffle::kByWeight, 2000);
  CHECK(std::abs(first["l0e0"] - 1000.0) < margin(2000, 0.5));
}

}  // namespace signalbox::lb
