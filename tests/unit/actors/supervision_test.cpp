// SPDX-License-Identifier: Apache-2.0
#include "actors/supervision.hpp"

#include <vector>

#include <catch2/catch.hpp>

#include "actors/seed.hpp"
#include "actors/waker.hpp"

namespace signalbox::actors {
namespace {

ConfigUpdated update(Generation generation) {
  ConfigUpdated result;
  result.generation = generation;
  return result;
}

}  // namespace

TEST_CASE("supervision: the delay doubles with each death, up to its limit", "[actors]") {
  RestartDelay delay;
  CHECK(delay.next() == RestartDelay::kFirst);
  CHECK(delay.next() == 2 * RestartDelay::kFirst);
  CHECK(delay.next() == 4 * RestartDelay::kFirst);
  for (int i = 0; i < 20; ++i)
    delay.next();
  CHECK(delay.next() == RestartDelay::kLongest);
  delay.forget();
  CHECK(delay.next() == RestartDelay::kFirst);
}

TEST_CASE("supervision: a configuration that was not survived is not replayed", "[actors]") {
  ReplayLog log;
  log.sent(update(1));
  log.applied(1);
  log.sent(update(2));

  SECTION("killed by it: the one before is replayed") {
    log.died();
    REQUIRE(log.to_replay());
    CHECK(log.to_replay()->generation == 1);
  }
  SECTION("survived it: it is replayed itself") {
    log.applied(2);
    log.died();
    CHECK(log.to_replay()->generation == 2);
  }
  SECTION("an answer that comes after newer ones were sent counts all the same") {
    log.sent(update(3));
    log.applied(2);
    log.died();
    REQUIRE(log.to_replay());
    CHECK(log.to_replay()->generation == 2);
  }
  SECTION("a newer one is not that poison") {
    log.died();
    log.sent(update(3));
    CHECK(log.to_replay()->generation == 3);
  }
  SECTION("without any good one there is nothing to replay") {
    ReplayLog fresh;
    fresh.sent(update(1));
    fresh.died();
    CHECK_FALSE(fresh.to_replay());
  }
}

TEST_CASE("waker: jobs run in order, and all of them before it ends", "[actors]") {
  std::vector<int> ran;
  {
    Waker waker;
    for (int i = 0; i < 100; ++i)
      waker.post([&ran, i] { ran.push_back(i); });
  }
  REQUIRE(ran.size() == 100);
  CHECK(std::ranges::is_sorted(ran));
}

TEST_CASE("seed_of: differs by name, number and runtime, and is the same in every process",
          "[actors]") {
  CHECK(seed_of(1, "a") != seed_of(1, "b"));
  CHECK(seed_of(1, "a", 1) != seed_of(1, "a", 2));
  CHECK(seed_of(1, "a") != seed_of(2, "a"));
  CHECK(seed_of(1, "policy", 7) == 0x621664123e32e079ULL);
}

}  // namespace signalbox::actors
