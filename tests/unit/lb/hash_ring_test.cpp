// SPDX-License-Identifier: Apache-2.0
//
// The ring at its limits. tests/spec/a42_ring_hash_test has its rules.
#include "lb/leaf/hash_ring.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

namespace signalbox::lb {

TEST_CASE("hash_ring: without items there are no points", "[lb][ring_hash]") {
  CHECK(HashRing({}, {}).size() == 0);
  CHECK(HashRing().size() == 0);
}

TEST_CASE("hash_ring: of more items than points some have none", "[lb][ring_hash][A42]") {
  constexpr std::size_t kItems = 10'000;
  std::vector<std::string> keys;
  for (std::size_t number = 0; number < kItems; ++number)
    keys.push_back(absl::StrCat("10.0.", number / 250, ".", number % 250, ":443"));
  std::vector<HashRing::Item> items;
  for (const std::string& key : keys)
    items.push_back({key, 1});
  const HashRing ring(items, {1024, 4096});
  CHECK(ring.size() == 4096);
  std::vector<std::size_t> points(kItems);
  for (std::size_t at = 0; at < ring.size(); ++at)
    ++points[ring.item(at)];
  CHECK(std::ranges::max(points) == 1);
  for (std::size_t item = 0; item < kItems; ++item)
    REQUIRE(ring.has_point(item) == (points[item] > 0));
  CHECK_FALSE(ring.has_point(kItems));
}

TEST_CASE("hash_ring: of 1,000 endpoints one leaves, and its keys alone move",
          "[lb][ring_hash][A42]") {
  constexpr std::size_t kEndpoints = 1'000;
  std::vector<std::string> keys;
  for (std::size_t number = 0; number < kEndpoints; ++number)
    keys.push_back(absl::StrCat("10.0.", number / 250, ".", number % 250, ":443"));
  std::vector<HashRing::Item> items;
  for (const std::string& key : keys)
    items.push_back({key, 1});
  const HashRing before(items, {});
  for (const std::size_t gone : {0U, 17U, 500U, 999U}) {
    auto rest = items;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(gone));
    const HashRing after(rest, {});
    constexpr std::uint64_t kHashes = 1U << 16U;
    std::size_t moved = 0;
    for (std::uint64_t hash = 0; hash < kHashes; ++hash) {
      const auto& was = items[before.item(before.find(hash << 48U))];
      if (was.key == rest[after.item(after.find(hash << 48U))].key) continue;
      REQUIRE(was.key == keys[gone]);
      ++moved;
    }
    CAPTURE(gone, moved);
    CHECK(moved > 0);
    CHECK(static_cast<double>(moved) <= static_cast<double>(kHashes) * (0.001 + 0.005));
  }
}

}  // namespace signalbox::lb
