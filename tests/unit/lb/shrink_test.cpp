// SPDX-License-Identifier: Apache-2.0
#include "lb/shrink.hpp"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/leaf/endpoint_set.hpp"
#include "lb/subchannel/subchannel_map_core.hpp"
#include "lb/tree/outlier_endpoints.hpp"
#include "tests/support/counted_memory.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {
namespace {

TEST_CASE("shrink: a table that has lost nearly all entries has the memory of few",
          "[lb][scale][memory]") {
  absl::flat_hash_map<int, int> table;
  for (int i = 0; i < 100'000; ++i)
    table[i] = i;
  const std::size_t large = table.capacity();
  shrink_if_sparse(table);
  CHECK(table.capacity() == large);
  for (int i = 2; i < 100'000; ++i) {
    table.erase(i);
    shrink_if_sparse(table);
  }
  CHECK(table.capacity() <= 1'024);
  CHECK(table.size() == 2);
  CHECK(table.at(1) == 1);
  table.clear();
  shrink_if_sparse(table);
  CHECK(table.empty());
}

TEST_CASE("shrink: a table that is small, or not sparse, is left alone", "[lb][scale][memory]") {
  absl::flat_hash_map<int, int> table;
  table.reserve(500);
  const std::size_t small = table.capacity();
  shrink_if_sparse(table);
  CHECK(table.capacity() == small);
  table.reserve(10'000);
  const std::size_t large = table.capacity();
  for (int i = 0; i < 5'000; ++i)
    table[i] = i;
  shrink_if_sparse(table);
  CHECK(table.capacity() == large);
}

// --- cores that had 20,000 endpoints, and have two -----------------------------------------------

// Without shrink_if_sparse() a table keeps more than this.
constexpr std::size_t kFew = 100'000;

std::vector<std::string> addresses(std::size_t count) {
  std::vector<std::string> all(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i] = absl::StrCat("10.0.0.1:", 10'000 + i);
  return all;
}

TEST_CASE("shrink: a subchannel map", "[lb][subchannel_map][scale][memory]") {
  const Holder leaf{PolicyPath{"leaf"}, {1}};
  const auto many = addresses(20'000);
  const testing::CountedMemory memory;
  SubchannelMapCore map;
  const auto apply = [&](Generation generation) {
    map.step(MapGenerationStarted{{ClusterName{"orders"}, std::chrono::seconds(3)}, generation},
             Instant{});
    map.step(MapGenerationApplied{generation}, Instant{});
  };
  for (const std::string& address : many)
    map.step(SubchannelAcquired{leaf, Address{address}}, Instant{});
  apply(1);
  CHECK(memory.live() > 10 * kFew);
  for (std::size_t i = 2; i < many.size(); ++i)
    map.step(SubchannelReleased{leaf, Address{many[i]}}, Instant{});
  apply(2);
  CHECK(memory.live() < kFew);
}

TEST_CASE("shrink: the endpoints of a leaf", "[lb][leaf][scale][memory]") {
  const auto connects = GENERATE(EndpointSet::Connects::kAtOnce, EndpointSet::Connects::kWhenAsked);
  const EndpointsPtr many = slice_of(addresses(20'000));
  const EndpointsPtr few = slice_of(addresses(2));
  const testing::CountedMemory memory;
  EndpointSet set(connects);
  const auto update = [&](const EndpointsPtr& list) {
    LbEffects effects;
    set.update(list, effects);
  };
  update(many);
  CHECK(memory.live() > 10 * kFew);
  update(few);
  update(few);  // The list of members keeps its memory until the next update.
  CHECK(memory.live() < kFew);
}

TEST_CASE("shrink: the endpoints of an outlier detection",
          "[lb][outlier_detection][scale][memory]") {
  const EndpointsPtr many = slice_of(addresses(20'000));
  const EndpointsPtr few = slice_of(addresses(2));
  const testing::CountedMemory memory;
  OutlierEndpoints endpoints(nullptr);
  endpoints.update(many);
  CHECK(memory.live() > 10 * kFew);
  endpoints.update(few);
  CHECK(memory.live() < kFew);
}

}  // namespace
}  // namespace signalbox::lb
