// SPDX-License-Identifier: Apache-2.0
#include "messages/counting/tracked.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

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

TEST_CASE("tracked: a counter that was given back begins at zero again", "[messages][tracked]") {
  // A use begins on this thread and ends on another: the sum over the stripes is zero, although the
  // stripes of both threads are not.
  for (int round = 0; round < 20; ++round) {
    const Tracked tracked;
    REQUIRE(tracked.uses() == 0);
    Use use(tracked);
    std::thread([held = std::move(use)]() mutable { const Use ended = std::move(held); }).join();
    const Use last(tracked);
    REQUIRE(tracked.uses() == 1);
  }
}

TEST_CASE("tracked: objects count apart, however many there are", "[messages][tracked]") {
  const std::vector<Tracked> objects(100);
  for (std::size_t i = 0; i < objects.size(); i += 3) {
    const Use use(objects[i], objects[i].use_counter());
    const auto in_use = std::ranges::count_if(objects, &Tracked::in_use);
    REQUIRE(in_use == 1);
    REQUIRE(objects[i].in_use());
  }
  CHECK(std::ranges::none_of(objects, &Tracked::in_use));
}

TEST_CASE("tracked: counters that were given back are taken again before there are more",
          "[messages][tracked]") {
  std::set<std::uintptr_t> places;  // A UseCounter is the address of its count.
  for (int round = 0; round < 20; ++round) {
    const std::vector<Tracked> objects(100);
    for (const Tracked& object : objects)
      places.insert(std::bit_cast<std::uintptr_t>(object.use_counter()));
  }
  CHECK(places.size() >= 100);
  CHECK(places.size() < 500);  // The pool also has counters from other tests.
}

}  // namespace
}  // namespace signalbox
