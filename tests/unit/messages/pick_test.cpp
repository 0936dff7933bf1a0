// SPDX-License-Identifier: Apache-2.0
#include "messages/pick.hpp"

#include <array>

#include <catch2/catch.hpp>

namespace signalbox {
namespace {

TEST_CASE("draw: decisions of one call are independent and repeatable", "[messages][pick]") {
  CHECK(draw(7, Salt::kLocality) == draw(7, Salt::kLocality));
  CHECK(draw(7, Salt::kLocality) != draw(7, Salt::kEndpoint));
  CHECK(draw(7, Salt::kLocality, 1) != draw(7, Salt::kLocality, 2));
  CHECK(draw(7, Salt::kLocality) != draw(8, Salt::kLocality));
  CHECK(draw_below(7, Salt::kEndpoint, 1) == 0);
}

TEST_CASE("draw: a bounded draw is even", "[messages][pick]") {
  constexpr int kDraws = 60'000;
  std::array<int, 6> counts{};
  for (std::uint64_t seed = 0; seed < kDraws; ++seed)
    ++counts[draw_below(seed, Salt::kEndpoint, counts.size())];
  for (const int count : counts)
    CHECK(count == Approx(kDraws / 6.0).epsilon(0.03));
}

}  // namespace
}  // namespace signalbox
