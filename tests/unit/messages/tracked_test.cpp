// SPDX-License-Identifier: Apache-2.0
#include "messages/tracked.hpp"

#include <thread>
#include <type_traits>
#include <utility>

#include <catch2/catch.hpp>

namespace signalbox {
namespace {

TEST_CASE("tracked: is in use as long as a use lives", "[messages][tracked]") {
  const Tracked tracked;
  CHECK_FALSE(tracked.in_use());
  {
    const Use first(tracked);
    const Use second(tracked);
    CHECK(first);
    CHECK(first.get() == &tracked);
    CHECK(tracked.uses() == 2);
  }
  CHECK_FALSE(tracked.in_use());
}

TEST_CASE("tracked: a use moves and is counted once", "[messages][tracked]") {
  static_assert(!std::is_copy_constructible_v<Use>);
  const Tracked tracked;
  Use first(tracked);
  Use second(std::move(first));
  CHECK_FALSE(first);
  CHECK(second);
  CHECK(tracked.uses() == 1);
  Use third;
  third = std::move(second);
  CHECK(third.get() == &tracked);
  CHECK(tracked.uses() == 1);
}

TEST_CASE("tracked: assigning another use releases the former", "[messages][tracked]") {
  const Tracked old;
  const Tracked next;
  Use use(old);
  use = Use(next);
  CHECK_FALSE(old.in_use());
  CHECK(next.uses() == 1);
  use = Use();
  CHECK_FALSE(next.in_use());
  CHECK_FALSE(use);
}

TEST_CASE("tracked: a use may end on any thread", "[messages][tracked]") {
  const Tracked tracked;
  Use use(tracked);
  std::thread([held = std::move(use)]() mutable { const Use ended = std::move(held); }).join();
  CHECK_FALSE(tracked.in_use());
}

}  // namespace
}  // namespace signalbox
