// SPDX-License-Identifier: Apache-2.0
#include "actors/supervision.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "actors/protocol/caf_version.hpp"
#include "actors/seed.hpp"
#include "actors/waker.hpp"

namespace signalbox::actors::supervision_test {
namespace {

ConfigUpdated update(Generation generation) {
  ConfigUpdated result;
  result.generation = generation;
  return result;
}

struct FakeHandle {
  caf::actor_addr address() const { return {}; }
};

struct FakeSelf {
  void set_down_handler(std::function<void(caf::down_msg&)> handler) { down = std::move(handler); }

  void monitor(const FakeHandle&) { ++monitored; }

  void demonitor(const caf::actor_addr&) { --monitored; }

  std::function<void(caf::down_msg&)> down;
  int monitored = 0;
};

}  // namespace

TEST_CASE("supervision: the delay doubles with each death, up to its limit", "[actors]") {
  RestartDelay delay;
  const Instant now{};
  CHECK(delay.next(now) == RestartDelay::kFirst);
  CHECK(delay.next(now) == 2 * RestartDelay::kFirst);
  CHECK(delay.next(now) == 4 * RestartDelay::kFirst);
  for (int i = 0; i < 20; ++i)
    delay.next(now);
  CHECK(delay.next(now) == RestartDelay::kLongest);
}

TEST_CASE("supervision: a quiet minute makes the delay short again, less does not", "[actors]") {
  RestartDelay delay(RestartDelay::kFirstOfStream);
  Instant now{};
  CHECK(delay.next(now) == RestartDelay::kFirstOfStream);
  now += RestartDelay::kQuiet - Duration(1);
  CHECK(delay.next(now) == 2 * RestartDelay::kFirstOfStream);
  now += RestartDelay::kQuiet - Duration(1);  // The quiet time counts from the last death.
  CHECK(delay.next(now) == 4 * RestartDelay::kFirstOfStream);
  now += RestartDelay::kQuiet;
  CHECK(delay.next(now) == RestartDelay::kFirstOfStream);
  CHECK(delay.next(now) == 2 * RestartDelay::kFirstOfStream);
}

TEST_CASE("watches: who is watched again is monitored once, with the new action", "[actors]") {
  FakeSelf self;
  const FakeHandle child;
  protocol::Watches watches;
  std::string ended;
  watches.add(&self, child, [&](const caf::error&) { ended += "first "; });
  watches.add(&self, child, [&](const caf::error&) { ended += "second "; });
  CHECK(self.monitored == 1);
  for (int i = 0; i < 2; ++i) {
    caf::down_msg down{child.address(), {}};
    self.down(down);
  }
  CHECK(ended == "second ");
  watches.add(&self, child, [&](const caf::error&) { ended += "third "; });
  CHECK(self.monitored == 2);
  watches.remove(&self, child);
  CHECK(self.monitored == 1);
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
  SECTION("one behind the poison may be its cure: it is tried once, after the back-off") {
    log.sent(update(3));
    log.sent(update(4));
    log.died();
    CHECK(log.replay().generation == 4);
    log.died();
    CHECK(log.replay().generation == 1);
  }
  SECTION("and is good when it is applied") {
    log.sent(update(3));
    log.died();
    CHECK(log.replay().generation == 3);
    log.applied(3);
    log.died();
    CHECK(log.replay().generation == 3);
  }
  SECTION("those that came while it was dead are one trial") {
    log.died();
    log.sent(update(3));
    log.sent(update(4));
    CHECK(log.replay().generation == 4);
    log.died();
    CHECK(log.replay().generation == 1);
  }
  SECTION("of a child that reports nothing the newest are remembered, and no more") {
    const auto most = static_cast<Generation>(ReplayLog::kMostUnproven);
    for (Generation next = 3; next <= 2 * most; ++next)
      log.sent(update(next));
    CHECK(log.to_replay()->generation == 2 * most);
    for (Generation death = 1; death < most; ++death) {
      log.died();
      CHECK(log.to_replay()->generation == 2 * most);
    }
    log.died();
    CHECK(log.to_replay()->generation == 1);
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

}  // namespace signalbox::actors::supervision_test
