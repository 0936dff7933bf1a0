// SPDX-License-Identifier: Apache-2.0
#include "actors/applied_configs.hpp"

#include <catch2/catch.hpp>

namespace signalbox::actors {

TEST_CASE("applied configs: the last 16 are kept, and the oldest goes first", "[actors][dump]") {
  AppliedConfigs configs;
  CHECK(configs.newest_last().empty());
  for (Generation generation = 1; generation <= 16; ++generation)
    configs.add({.generation = generation});
  REQUIRE(configs.newest_last().size() == 16);
  CHECK(configs.newest_last().front().generation == 1);
  configs.add({.generation = 17});
  const auto kept = configs.newest_last();
  REQUIRE(kept.size() == 16);
  for (std::size_t i = 0; i < kept.size(); ++i)
    CHECK(kept[i].generation == i + 2);
}

}  // namespace signalbox::actors
