// SPDX-License-Identifier: Apache-2.0
#include "xds/client/request_turn.hpp"

#include <chrono>
#include <vector>

#include <catch2/catch.hpp>

namespace signalbox::xds {
namespace {

using namespace std::chrono_literals;
using Change = RequestTurn::Change;

// No jitter, so the test knows the exact waits.
RequestTurn turn() {
  RequestTurnOptions options;
  options.wait.jitter = 0;
  return RequestTurn(options, 1);
}

const Instant kNow{1h};

}  // namespace

TEST_CASE("request turn: what waits for the answer to the last request", "[xds][request_turn]") {
  RequestTurn turn = xds::turn();
  CHECK_FALSE(turn.must_wait(Change::kAdds, kNow));
  CHECK_FALSE(turn.must_wait(Change::kRemoves, kNow));

  turn.asked(Change::kRemoves, kNow);
  CHECK_FALSE(turn.must_wait(Change::kAdds, kNow));
  CHECK(turn.must_wait(Change::kRemoves, kNow));

  turn.asked(Change::kAdds, kNow);
  CHECK(turn.must_wait(Change::kAdds, kNow));
  CHECK(turn.must_wait(Change::kRemoves, kNow));
  // A later request that only removes names does not end this wait.
  turn.asked(Change::kRemoves, kNow);
  CHECK(turn.must_wait(Change::kAdds, kNow));

  SECTION("not once it has come") {
    turn.answered();
    CHECK_FALSE(turn.must_wait(Change::kAdds, kNow));
  }
  SECTION("not for longer than a resource is waited for") {
    CHECK(turn.must_wait(Change::kAdds, kNow + 14'999ms));
    CHECK_FALSE(turn.must_wait(Change::kAdds, kNow + 15s));
    turn.asked(Change::kRemoves, kNow + 15s);
    CHECK_FALSE(turn.must_wait(Change::kAdds, kNow + 15s));
  }
}

TEST_CASE("request turn: waits grow until an answer comes", "[xds][request_turn]") {
  RequestTurn turn = xds::turn();
  turn.asked(Change::kAdds, kNow);
  const auto waits = [&] {
    std::vector<Duration> all;
    for (int i = 0; i < 5; ++i)
      all.push_back(turn.next_wait());
    return all;
  };
  const std::vector<Duration> grown{100ms, 400ms, 1600ms, 5s, 5s};
  CHECK(waits() == grown);
  turn.answered();
  CHECK(waits() == grown);
}

}  // namespace signalbox::xds
