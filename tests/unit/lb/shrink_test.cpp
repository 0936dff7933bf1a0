// SPDX-License-Identifier: Apache-2.0
#include "lb/shrink.hpp"

#include "absl/container/flat_hash_map.h"
#include <catch2/catch.hpp>

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

}  // namespace
}  // namespace signalbox::lb
