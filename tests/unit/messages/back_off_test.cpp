// SPDX-License-Identifier: Apache-2.0
#include "messages/back_off.hpp"

#include <cstdint>

#include <catch2/catch.hpp>

#include "messages/ids.hpp"

namespace signalbox {
namespace {

using namespace std::chrono_literals;

TEST_CASE("back_off: each wait is so many times as long, up to the longest",
          "[messages][back_off]") {
  struct Row {
    Duration last;
    double factor;
    Duration longest;
    Duration expected;
  };

  const auto row = GENERATE(values<Row>({
      {1s, 1.6, 120s, 1600ms},
      {100s, 1.6, 120s, 120s},
      {120s, 1.6, 120s, 120s},
      {60s, 2, 120s, 120s},
      {100ms, 4, 5s, 400ms},
      {Duration(3), 1.5, 1s, Duration(4)},  // 4.5 ticks are cut to 4.
      {Duration::zero(), 2, 1s, Duration::zero()},
      {Duration::max() / 3 * 2, 2, Duration::max(), Duration::max()},
  }));
  CHECK(longer_wait(row.last, row.factor, row.longest) == row.expected);
}

TEST_CASE("back_off: jitter is a share of the wait, to both sides", "[messages][back_off]") {
  CHECK(jittered(Duration(10s), 0.2, -1) == 8s);
  CHECK(jittered(Duration(10s), 0.2, 0) == 10s);
  CHECK(jittered(Duration(10s), 0.2, 1) == 12s);
  CHECK(jittered(Duration(10s), 0, 1) == 10s);
}

TEST_CASE("back_off: a chance is a number from -1 to 1, without 1", "[messages][back_off]") {
  CHECK(chance_of(0) == -1);
  CHECK(chance_of(std::uint64_t{1} << 63U) == 0);
  CHECK(chance_of(~std::uint64_t{0}) < 1);
  CHECK(chance_of(~std::uint64_t{0}) > 0.999);
}

TEST_CASE("back_off: durations with fractions keep them", "[messages][back_off]") {
  using Ticks = std::chrono::duration<double, Duration::period>;
  CHECK(longer_wait(Ticks(3), 1.5, Ticks(100)).count() == Approx(4.5));
  CHECK(jittered(Ticks(3), 0.5, 1).count() == Approx(4.5));
}

}  // namespace
}  // namespace signalbox
