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

using Strings = std::vector<std::string>;

std::vector<Address> addresses(const Strings& texts) {
  return {texts.begin(), texts.end()};
}

Strings texts(const std::vector<Address>& addresses) {
  Strings texts;
  for (const Address& address : addresses)
    texts.push_back(address.str());
  return texts;
}

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

// How often each address is the first, of `runs` seeds.
std::map<std::string, int> firsts(const EndpointsPtr& slice, Shuffle shuffle, int runs) {
  std::map<std::string, int> firsts;
  for (int seed = 0; seed < runs; ++seed)
    ++firsts[flatten(*slice, shuffle, static_cast<std::uint64_t>(seed)).front().str()];
  return firsts;
}

// Six standard deviations of so many draws.
double margin(int runs, double share) {
  return 6 * std::sqrt(runs * share * (1 - share));
}

}  // namespace

TEST_CASE("address_order: families take turns, the first address's begins",
          "[lb][pick_first][A61]") {
  struct Row {
    Strings from;
    Strings to;
  };

  const auto row = GENERATE(values<Row>({
      {{}, {}},
      {{"1.1.1.1:1"}, {"1.1.1.1:1"}},
      {{"a", "b", "c"}, {"a", "b", "c"}},
      {{"[::1]:1", "[::2]:1"}, {"[::1]:1", "[::2]:1"}},
      {{"a", "b", "[c]", "[d]"}, {"a", "[c]", "b", "[d]"}},
      {{"[c]", "[d]", "a", "b"}, {"[c]", "a", "[d]", "b"}},
      {{"a", "b", "c", "[d]"}, {"a", "[d]", "b", "c"}},
      {{"[a]", "b", "c", "d"}, {"[a]", "b", "c", "d"}},
      {{"a", "[b]", "c", "[d]"}, {"a", "[b]", "c", "[d]"}},
      {{"a", "a", "[b]", "a", "[b]", "c"}, {"a", "[b]", "c"}},
  }));
  INFO(::Catch::Detail::stringify(row.from));
  CHECK(texts(interleave_families(addresses(row.from))) == row.to);
}

TEST_CASE("address_order: interleaving drops nothing, and keeps the order of each family",
          "[lb][pick_first][A61]") {
  CHECK(test::holds(
      "a permutation of the distinct addresses", 1'000, [](const std::vector<bool>& v6) {
        std::vector<Address> from;
        for (std::size_t at = 0; at < v6.size(); ++at)
          from.emplace_back(absl::StrCat(v6[at] ? "[" : "", at % 7));
        const auto family = [&](std::vector<Address> all, bool ipv6) {
          std::erase_if(all, [&](const Address& it) { return (it.str().front() == '[') != ipv6; });
          return all;
        };
        std::vector<Address> distinct;
        for (const Address& address : from) {
          if (std::ranges::find(distinct, address) == distinct.end()) distinct.push_back(address);
        }
        const auto to = interleave_families(from);
        RC_ASSERT(to.size() == distinct.size());
        RC_ASSERT(family(to, true) == family(distinct, true));
        RC_ASSERT(family(to, false) == family(distinct, false));
        // Two of one family stand side by side only behind the last of the other.
        for (std::size_t at = 2; at < to.size(); ++at) {
          const bool same = (to[at].str().front() == '[') == (to[at - 1].str().front() == '[');
          const bool before =
              (to[at - 1].str().front() == '[') == (to[at - 2].str().front() == '[');
          RC_ASSERT(same || !before);
        }
      }));
}

TEST_CASE("address_order: shuffling moves whole endpoints, and loses none",
          "[lb][pick_first][A61][A62][A113]") {
  CHECK(test::holds("a permutation of the endpoints", 1'000, [](std::uint64_t seed) {
    Strings endpoints;
    const int count = *rc::gen::inRange(0, 40);
    endpoints.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      endpoints.push_back(absl::StrCat(i, "a,", i, "b"));
    const auto slice = slice_of(endpoints);
    const auto configured = flatten(*slice, Shuffle::kNone, seed);
    RC_ASSERT(texts(configured).size() == 2 * endpoints.size());
    for (const Shuffle shuffle : {Shuffle::kEvenly, Shuffle::kByWeight}) {
      const auto order = flatten(*slice, shuffle, seed);
      RC_ASSERT(order == flatten(*slice, shuffle, seed));
      RC_ASSERT(std::ranges::is_permutation(order, configured));
      for (std::size_t at = 0; at < order.size(); at += 2) {
        const std::string& first = order[at].str();
        RC_ASSERT(order[at + 1].str() == first.substr(0, first.size() - 1) + "b");
      }
    }
  }));
}

TEST_CASE("address_order: each order is as likely as any other", "[lb][pick_first][A62][A113]") {
  const Shuffle shuffle = GENERATE(Shuffle::kEvenly, Shuffle::kByWeight);
  const auto slice = slice_of({"a", "b", "c"});
  std::map<Strings, int> seen;
  constexpr int kRuns = 6000;
  for (int seed = 0; seed < kRuns; ++seed)
    ++seen[texts(flatten(*slice, shuffle, static_cast<std::uint64_t>(seed)))];
  REQUIRE(seen.size() == 6);
  for (const auto& [order, count] : seen)
    CHECK(std::abs(count - kRuns / 6.0) < margin(kRuns, 1 / 6.0));
}

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
  // A62 alone knows no weights.
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

// As keys of u^(1/w) nearly all of them are 1.
TEST_CASE("address_order: weights as large as they come still shuffle", "[lb][pick_first][A113]") {
  const auto slice = weighted({{UINT32_MAX, {UINT32_MAX, UINT32_MAX}}});
  auto first = firsts(slice, Shuffle::kByWeight, 2000);
  CHECK(std::abs(first["l0e0"] - 1000.0) < margin(2000, 0.5));
}

}  // namespace signalbox::lb
