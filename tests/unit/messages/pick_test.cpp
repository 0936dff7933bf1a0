// SPDX-License-Identifier: Apache-2.0
#include "messages/pick.hpp"

#include <array>
#include <utility>

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

// A call's decision must be independent of the decisions of slightly later calls, whether seeds
// count up or advance as the drop-in channel's seeds do.
TEST_CASE("draw: decisions of calls one after another are independent", "[messages][pick]") {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15ULL;
  constexpr int kCalls = 20'000;
  constexpr std::size_t kWays = 4;
  for (const std::uint64_t advance : {std::uint64_t{1}, kGoldenRatio}) {
    for (std::uint64_t lag = 1; lag <= 16; ++lag) {
      for (const auto& [salt, step] : {std::pair{Salt::kEndpoint, 0},
                                       {Salt::kDrop, 0},
                                       {Salt::kLocality, 0},
                                       {Salt::kDrop, 1}}) {
        std::array<std::array<int, kWays>, kWays> seen{};
        for (int call = 0; call < kCalls; ++call) {
          const std::uint64_t seed = static_cast<std::uint64_t>(call) * advance;
          const std::uint64_t later = seed + lag * advance;
          ++seen[draw_below(seed, Salt::kDrop, kWays)]
                [draw_below(later, salt, kWays, static_cast<std::uint64_t>(step))];
        }
        double chi_square = 0;
        const double expected = static_cast<double>(kCalls) / (kWays * kWays);
        for (const auto& row : seen) {
          for (const int count : row)
            chi_square += (count - expected) * (count - expected) / expected;
        }
        INFO("advance " << advance << ", lag " << lag << ", salt " << static_cast<int>(salt));
        CHECK(chi_square < 50);  // Independent decisions exceed 50 once in 80,000 tests.
      }
    }
  }
}

}  // namespace
}  // namespace signalbox
