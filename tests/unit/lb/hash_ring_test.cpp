// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/hash_ring.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/xx_hash.hpp"
#include "messages/pick.hpp"
#include "tests/support/property.hpp"

namespace signalbox::lb {
namespace {

using Weights = std::vector<std::uint64_t>;

struct Built {
  Built(std::vector<std::string> names, const Weights& weights, HashRing::Sizes sizes)
      : keys(std::move(names)) {
    std::vector<HashRing::Item> items;
    for (std::size_t at = 0; at < keys.size(); ++at)
      items.push_back({keys[at], weights.empty() ? 1 : weights[at]});
    ring = HashRing(items, sizes);
  }

  std::vector<std::size_t> points() const {
    std::vector<std::size_t> points(keys.size());
    for (std::size_t at = 0; at < ring.size(); ++at)
      ++points[ring.item(at)];
    return points;
  }

  const std::string& at(std::uint64_t hash) const { return keys[ring.item(ring.find(hash))]; }

  std::vector<std::string> keys;
  HashRing ring;
};

std::vector<std::string> addresses(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t number = 0; number < count; ++number)
    names.push_back(absl::StrCat("10.0.", number / 250, ".", number % 250, ":443"));
  return names;
}

std::uint64_t key(std::uint64_t number) {
  return draw(number, Salt::kRequestHash);
}

}  // namespace

TEST_CASE("xx_hash: is XXH64 with seed 0", "[lb][ring_hash][A42]") {
  CHECK(xx_hash("") == 0xef46db3751d8e999ULL);
  CHECK(xx_hash("a") == 0xd24ec4f1a98c6e5bULL);
  CHECK(xx_hash("abc") == 0x44bc2cf5ad770999ULL);
}

TEST_CASE("hash_ring: the lightest has whole points, and the ring its least size",
          "[lb][ring_hash][A42]") {
  struct Row {
    const char* what;
    Weights weights;
    HashRing::Sizes sizes;
    std::vector<std::size_t> points;
  };

  const auto row = GENERATE(values<Row>({
      {"one", {7}, {1024, 4096}, {1024}},
      {"two equal", {1, 1}, {1024, 4096}, {512, 512}},
      {"three equal: rounded up", {5, 5, 5}, {1024, 4096}, {342, 342, 342}},
      {"one to three", {1, 3}, {100, 4096}, {25, 75}},
      {"one to two: rounded up for the lightest", {1, 2}, {100, 4096}, {34, 68}},
      {"cut at the largest size", {1, 1, 2}, {1024, 8}, {2, 2, 4}},
      {"one point each", {1, 1, 1}, {1, 4}, {1, 1, 1}},
      {"fractions are carried over", {1, 1, 1, 1}, {1, 2}, {1, 0, 1, 0}},
  }));
  DYNAMIC_SECTION(row.what) {
    const Built built(addresses(row.weights.size()), row.weights, row.sizes);
    CHECK(built.points() == row.points);
  }
}

TEST_CASE("hash_ring: a point stands where its key and number hash to", "[lb][ring_hash][A42]") {
  const Built built({"10.0.0.1:443", "pod-7"}, {}, {16, 16});
  std::set<std::uint64_t> expected;
  for (const std::string& name : built.keys) {
    for (int number = 0; number < 8; ++number) {
      const std::uint64_t hash = xx_hash(absl::StrCat(name, "_", number));
      expected.insert(hash);
      CHECK(built.at(hash) == name);
    }
  }
  // Past a point it is the next one's; past the last it is the first one's.
  std::uint64_t before = *expected.rbegin();
  for (const std::uint64_t hash : expected) {
    CHECK(built.ring.find(before + 1) == built.ring.find(hash));
    before = hash;
  }
}

TEST_CASE("hash_ring: without items there are no points", "[lb][ring_hash]") {
  CHECK(HashRing({}, {}).size() == 0);
  CHECK(HashRing().size() == 0);
}

TEST_CASE("hash_ring: of more items than points some have none", "[lb][ring_hash][A42]") {
  const Built built(addresses(10'000), {}, {1024, 4096});
  CHECK(built.ring.size() == 4096);
  const auto points = built.points();
  CHECK(std::ranges::max(points) == 1);
  for (std::size_t item = 0; item < points.size(); ++item)
    REQUIRE(built.ring.has_point(item) == (points[item] > 0));
  CHECK_FALSE(built.ring.has_point(points.size()));
}

TEST_CASE("hash_ring: points are in proportion to weights, whatever these are",
          "[lb][ring_hash][A42][A113][S5]") {
  CHECK(test::holds("points in proportion", 1'000, [] {
    const auto weights = *rc::gen::suchThat(
        rc::gen::container<Weights>(rc::gen::inRange<std::uint64_t>(1, 1'000'000)),
        [](const Weights& some) { return !some.empty() && some.size() <= 40; });
    const auto least = *rc::gen::inRange<std::uint64_t>(1, 2048);
    const HashRing::Sizes sizes{least, *rc::gen::inRange<std::uint64_t>(least, 4097)};
    const Built built(addresses(weights.size()), weights, sizes);
    RC_ASSERT(built.ring.size() >= 1);
    RC_ASSERT(built.ring.size() <= sizes.max + 1);  // Rounding, as the peers have it.
    double sum = 0;
    for (const std::uint64_t weight : weights)
      sum += static_cast<double>(weight);
    const auto points = built.points();
    const auto size = static_cast<double>(built.ring.size());
    for (std::size_t at = 0; at < weights.size(); ++at) {
      const double share = size * static_cast<double>(weights[at]) / sum;
      RC_ASSERT(std::abs(static_cast<double>(points[at]) - share) <= 2.0);
    }
  }));
}

TEST_CASE("hash_ring: keys are shared by weight", "[lb][ring_hash][A42][S5]") {
  CHECK(test::holds("keys by weight", 1'000, [] {
    const auto count = *rc::gen::inRange<std::size_t>(2, 10);
    const auto weights = *rc::gen::container<Weights>(count, rc::gen::inRange<std::uint64_t>(1, 9));
    const Built built(addresses(count), weights, {2048, 4096});
    constexpr int kKeys = 2'000;
    const auto first = *rc::gen::arbitrary<std::uint32_t>();
    std::map<std::string, int> keys;
    for (int number = 0; number < kKeys; ++number)
      ++keys[built.at(key(first + static_cast<std::uint64_t>(number)))];
    double sum = 0;
    for (const std::uint64_t weight : weights)
      sum += static_cast<double>(weight);
    for (std::size_t at = 0; at < count; ++at) {
      // The arcs of n points are spread like sums of exponentials: a deviation of 1/√n of them.
      const double share = static_cast<double>(weights[at]) / sum;
      const double deviation = 6 * share / std::sqrt(share * 2048) + 6 * std::sqrt(share / kKeys);
      RC_ASSERT(std::abs(keys[built.keys[at]] / double{kKeys} - share) <= deviation);
    }
  }));
}

TEST_CASE("hash_ring: whoever leaves takes only its own keys along", "[lb][ring_hash][A42][S5]") {
  CHECK(test::holds("only its own keys move", 1'000, [] {
    constexpr std::uint64_t kPoints = 64;
    const auto count = *rc::gen::inRange<std::size_t>(2, 30);
    const auto leaver = *rc::gen::inRange<std::size_t>(0, count);
    const auto all = addresses(count);
    auto rest = all;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(leaver));
    const Built before(all, {}, {kPoints * count, kPoints * count});
    const Built after(rest, {}, {kPoints * (count - 1), kPoints * (count - 1)});
    constexpr int kKeys = 1'000;
    int moved = 0;
    for (std::uint64_t number = 0; number < kKeys; ++number) {
      const std::string& was = before.at(key(number));
      if (was == after.at(key(number))) continue;
      RC_ASSERT(was == all[leaver]);
      ++moved;
    }
    const double share = 1.0 / static_cast<double>(count);
    RC_ASSERT(moved / double{kKeys} <= share * (1 + 6 / std::sqrt(double{kPoints})) + 0.02);
  }));
}

}  // namespace signalbox::lb
