// SPDX-License-Identifier: Apache-2.0
//
// BackOff alone, without calls: the wait between two attempts of a call.
#include "channel/grpc/back_off.hpp"

#include <chrono>
#include <future>
#include <memory>

#include <catch2/catch.hpp>

namespace signalbox::channel {
namespace {

using namespace std::chrono_literals;

struct World {
  std::shared_ptr<BackOff> start(Duration delay) {
    return BackOff::start(waiting, delay, [this] { over.set_value(); });
  }

  bool is_over() { return over.get_future().wait_for(10s) == std::future_status::ready; }

  WaitList waiting;
  std::promise<void> over;
};

TEST_CASE("back_off: is over when its time is, and waits no longer", "[channel][retry]") {
  World world;
  world.start(1ms);
  CHECK(world.is_over());
  CHECK(world.waiting.size() == 0);
}

TEST_CASE("back_off: a publication does not end it", "[channel][retry]") {
  World world;
  world.start(1h);
  world.waiting.publish();
  // If the publication ended the back-off, the end would come while the test waits for `later`.
  std::promise<void> later;
  BackOff::start(world.waiting, 1ms, [&] { later.set_value(); });
  CHECK(later.get_future().wait_for(10s) == std::future_status::ready);
  CHECK(world.waiting.size() == 1);
  world.waiting.close();
  CHECK(world.is_over());
}

TEST_CASE("back_off: one that has not begun cannot be ended", "[channel][retry]") {
  World world;
  bool is_over = false;
  const auto back_off = std::make_shared<BackOff>(world.waiting, [&] { is_over = true; });
  back_off->cancel();
  CHECK_FALSE(is_over);
}

TEST_CASE("back_off: is over at once when it is cancelled, or the runtime ends",
          "[channel][retry]") {
  World world;
  SECTION("cancelled") {
    world.start(1h)->cancel();
  }
  SECTION("the runtime ends") {
    world.start(1h);
    world.waiting.close();
  }
  SECTION("the runtime has ended before") {
    world.waiting.close();
    world.start(1h);
  }
  CHECK(world.is_over());
  CHECK(world.waiting.size() == 0);
}

}  // namespace
}  // namespace signalbox::channel
