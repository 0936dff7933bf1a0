// SPDX-License-Identifier: Apache-2.0
#include "channel/pick/lost_picks.hpp"

#include <deque>
#include <initializer_list>
#include <string>

#include <catch2/catch.hpp>

#include "channel/pick/waiting_pick.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::channel::lost_picks_test {
namespace {

using testing::answering;
using testing::result;
using testing::RouterFixture;

// A connection that the test ends.
class Endable final : public Connection {
 public:
  using Connection::Connection;

  bool takes_calls() const override { return !is_ended; }

  bool is_ended = false;
};

}  // namespace

TEST_CASE("lost_picks: a pick passes over connections that have ended", "[channel][pick]") {
  RouterFixture fixture;
  const lb::CallArgs call{"/a.b/C", nullptr, 7};
  std::deque<Endable> endpoints;
  for (const char* address : {"a:1", "b:1", "c:1", "d:1", "e:1", "f:1"})
    endpoints.emplace_back(Address(address));
  const auto publish = [&](std::size_t count) {
    fixture.publish(testing::all_to(testing::to("c")), answering([&, count](const PickArgs& args) {
                      for (std::size_t i = 0; i < count; ++i)
                        if (!was_tried(args, endpoints[i])) return result(Complete(&endpoints[i]));
                      return result(Complete(&endpoints[0]));  // As policies do without a choice.
                    }));
  };
  const auto end = [&](std::initializer_list<std::size_t> ended) {
    for (const std::size_t i : ended)
      endpoints[i].is_ended = true;
  };
  const auto picked = [&](const lb::Pick& pick) -> std::string {
    return pick.connection() == nullptr ? "none" : pick.connection()->address().str();
  };
  const auto pick_alive = [&](const lb::CallArgs& args) {
    lb::Pick pick = channel::pick(fixture.router, args);
    pass_over_lost(fixture.router, pick, args);
    return pick;
  };
  publish(6);
  CHECK(picked(pick_alive(call)) == "a:1");
  SECTION("to the next one") {
    end({0});
    CHECK(picked(pick_alive(call)) == "b:1");
    end({1, 2});
    lb::Pick pick = pick_alive(call);
    CHECK(picked(pick) == "d:1");
    CHECK_FALSE(pick.is_put_off());
    CHECK(endpoints[0].uses() == 0);
    CHECK(endpoints[3].uses() == 1);
    AND_THEN("again, when the call is picked again") {
      endpoints[0].is_ended = false;
      end({3});
      const lb::Pick first = pick_alive(call);
      CHECK(picked(first) == "a:1");
      end({0});
      channel::repick(fixture.router, pick, call);
      CHECK(pick.outcome() == PickOutcome::kQueue);
    }
  }
  SECTION("and over the addresses that the call avoids") {
    end({0});
    const TriedAddresses tried = {Address("b:1")};
    lb::CallArgs avoids = call;
    avoids.tried = &tried;
    CHECK(picked(pick_alive(avoids)) == "c:1");
  }
  SECTION("of which there are not too many") {
    end({0, 1, 2, 3});
    const lb::Pick pick = pick_alive(call);
    CHECK(pick.outcome() == PickOutcome::kQueue);
    CHECK(pick.is_put_off());
    CHECK(delay_type(pick).reason == DelayReason::kStalePick);
    CHECK(has_to_wait(pick, OnFail::kReturn));
    CHECK_FALSE(may_repick(fixture.router, pick));
  }
  SECTION("and waits for a publication if all have ended") {
    end({0, 1});
    publish(2);
    lb::Pick pick = pick_alive(call);
    CHECK(pick.outcome() == PickOutcome::kQueue);
    CHECK_FALSE(may_repick(fixture.router, pick));
    publish(3);
    REQUIRE(may_repick(fixture.router, pick));
    channel::repick(fixture.router, pick, call);
    CHECK(picked(pick) == "c:1");
  }
}

}  // namespace signalbox::channel::lost_picks_test
