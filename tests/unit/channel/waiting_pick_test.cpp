// SPDX-License-Identifier: Apache-2.0
#include "channel/pick/waiting_pick.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/filter_fixture.hpp"
#include "tests/support/recording_observer.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::channel::waiting_pick_test {
namespace {

using namespace std::chrono_literals;
using testing::answering;
using testing::result;
using testing::RouterFixture;

const Instant kNow{1h};

// A pick that records its time limits instead of setting a timer. The test ends the pick.
class TestPick final : public WaitingPick {
 public:
  template <typename... Args>
  explicit TestPick(Args&&... args) : WaitingPick(std::forward<Args>(args)...) {}

  void limit(const lb::Pick& pick) override { limits.push_back(limited(kNow + 1h, kNow, pick)); }

  std::vector<Instant> limits;
};

class World {
 public:
  World() = default;

  // A waiting pick holds the list, and the list holds the pick. close() ends this cycle.
  ~World() { waiting->close(); }

  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::shared_ptr<TestPick> make(OnFail on_fail = OnFail::kReturn) {
    // `path` ends with this function, as a caller's text may, so the pick must have a copy.
    const std::string path = "/a.b/C";
    const lb::CallArgs call{path, nullptr, 7, &authority};
    return std::make_shared<TestPick>(waiting,
                                      fixture.router,
                                      callers,
                                      call,
                                      on_fail,
                                      fixture.router.pick(call),
                                      [this](lb::Pick pick) { ended.push_back(std::move(pick)); });
  }

  std::shared_ptr<TestPick> begin(OnFail on_fail = OnFail::kReturn) {
    auto pick = make(on_fail);
    pick->begin();
    return pick;
  }

  // Publishes as a runtime does: first stores the snapshot, then wakes the waiting picks.
  void publish(std::variant<Complete, Queue, Fail, Drop> outcome) {
    store(std::move(outcome));
    waiting->publish();
  }

  void store(std::variant<Complete, Queue, Fail, Drop> outcome) {
    fixture.publish(testing::with_filters(testing::all_to(action), chain),
                    answering([outcome](const PickArgs& args) {
                      CHECK(args.path == "/a.b/C");
                      CHECK(args.seed == 7);
                      return result(outcome);
                    }));
  }

  Complete complete() const { return Complete(fixture.backend.get()); }

  RouterFixture fixture;
  ForwardAction action = testing::to("c");
  std::vector<HttpFilter> chain;
  std::shared_ptr<const CallerStats> callers = std::make_shared<const CallerStats>();
  std::shared_ptr<WaitList> waiting = std::make_shared<WaitList>();
  std::string authority;
  std::vector<lb::Pick> ended;
};

}  // namespace

TEST_CASE("waiting_pick: is told of once, when it is complete", "[channel][pick]") {
  World world;
  const auto pick = world.begin();
  CHECK(world.waiting->size() == 1);
  world.publish(Queue{});
  CHECK(world.ended.empty());
  world.publish(world.complete());
  REQUIRE(world.ended.size() == 1);
  CHECK(world.ended[0].connection() == world.fixture.backend.get());
  CHECK(world.waiting->size() == 0);
  world.publish(world.complete());
  pick->wake();
  pick->end();
  CHECK(world.ended.size() == 1);
  CHECK_FALSE(pick->cancel());
}

TEST_CASE("waiting_pick: what was published before it waited is not missed", "[channel][pick]") {
  World world;
  const auto pick = world.make();
  world.store(world.complete());
  CHECK(world.ended.empty());
  pick->begin();
  CHECK(world.ended.size() == 1);
  CHECK(world.waiting->size() == 0);
}

TEST_CASE("waiting_pick: who is to have an authority has it, too", "[channel][pick][A81]") {
  World world;
  world.action.auto_host_rewrite = true;
  const auto locality = std::make_shared<const Locality>(
      Locality{.endpoints = {{.addresses = {Address("a:1")}, .hostname = "a.example"}}});
  const ChosenEndpoint chosen{locality, &locality->endpoints.front(), nullptr};
  Complete complete = world.complete();
  complete.endpoint = &chosen;
  world.begin();
  world.publish(Queue{});
  CHECK(world.authority.empty());
  world.publish(complete);
  REQUIRE(world.ended.size() == 1);
  CHECK(world.authority == "a.example");
}

TEST_CASE("waiting_pick: a failure ends it, unless it would rather wait", "[channel][pick]") {
  World world;
  const auto returns = world.begin(OnFail::kReturn);
  const auto waits = world.begin(OnFail::kWait);
  world.publish(Fail{absl::UnavailableError("nobody")});
  REQUIRE(world.ended.size() == 1);
  CHECK(world.ended[0].outcome() == PickOutcome::kFail);
  SECTION("for what comes later") {
    world.publish(world.complete());
    REQUIRE(world.ended.size() == 2);
    CHECK(world.ended[1].outcome() == PickOutcome::kComplete);
  }
  SECTION("but not for a drop") {
    world.publish(Drop{absl::UnavailableError("too many")});
    REQUIRE(world.ended.size() == 2);
    CHECK(world.ended[1].outcome() == PickOutcome::kDrop);
  }
  SECTION("to the end of its time, and then it says why") {
    waits->end();
    REQUIRE(world.ended.size() == 2);
    CHECK(world.ended[1].outcome() == PickOutcome::kFail);
    CHECK(world.ended[1].status() == absl::UnavailableError("cluster c: nobody"));
  }
}

TEST_CASE("waiting_pick: its end has it told as it is", "[channel][pick]") {
  World world;
  const auto pick = world.make();
  SECTION("while it waits") {
    pick->begin();
    pick->end();
  }
  SECTION("before it waits") {
    pick->end();
    pick->begin();
  }
  REQUIRE(world.ended.size() == 1);
  CHECK(world.ended[0].outcome() == PickOutcome::kQueue);
  CHECK(world.waiting->size() == 0);
}

TEST_CASE("waiting_pick: the end of the runtime is the last that it waits for", "[channel][pick]") {
  World world;
  const OnFail on_fail = GENERATE(OnFail::kReturn, OnFail::kWait);
  const auto pick = world.begin(on_fail);
  world.publish(Queue{});
  world.fixture.publish(std::nullopt, nullptr, absl::UnavailableError("shut down"));
  world.waiting->close();
  REQUIRE(world.ended.size() == 1);
  CHECK(world.ended[0].outcome() == PickOutcome::kFail);
  CHECK(world.ended[0].status() == absl::UnavailableError("cluster c: shut down"));
  // A pick that begins after close() ends at once.
  world.begin(OnFail::kWait);
  CHECK(world.ended.size() == 2);
}

TEST_CASE("waiting_pick: its wait counts by its reason, and a call without an endpoint by its code",
          "[channel][pick]") {
  World world;
  const auto waits = [&](DelayReason reason) -> std::int64_t {
    const StripedHistogram* const known = world.callers->waits_of({reason});
    if (known == nullptr) return 0;
    std::int64_t all = 0;
    for (const std::int64_t count : known->counts().buckets)
      all += count;
    return all;
  };
  world.publish(Queue{});
  const auto pick = world.begin(OnFail::kWait);
  SECTION("complete") {
    world.publish(Fail{absl::UnavailableError("all failed")});
    world.publish(world.complete());
    CHECK(waits(DelayReason::kFailing) == 1);
    CHECK(world.callers->calls(0) == 0);  // Router::finished() counts a completed call.
  }
  SECTION("dropped") {
    world.publish(Drop{absl::ResourceExhaustedError("too many")});
    CHECK(waits(DelayReason::kFailing) == 0);
    CHECK(world.callers->calls(8) == 1);
  }
  SECTION("too late") {
    pick->end();
    CHECK(world.callers->calls(4) == 1);
  }
  REQUIRE(world.ended.size() == 1);
  CHECK(waits(DelayReason::kConnecting) == 1);
  CHECK(waits(DelayReason::kResolving) == 0);
}

TEST_CASE("waiting_pick: the program's observer sees its wait, its reasons and its end",
          "[channel][pick][trace][A121]") {
  World world;
  const auto observer = std::make_shared<testing::RecordingObserver>();
  const auto tracing = std::make_shared<const CallTracing>(
      CallTracing{observer, "xds:///orders", [](const std::string&) {}});
  const auto begin = [&] {
    const auto pick = world.make(OnFail::kWait);
    pick->trace(TracedCall::begin(tracing, "/a.b/C", nullptr, Instant()));
    pick->begin();
    return pick;
  };
  SECTION("complete") {
    world.publish(Queue{});
    begin();
    world.publish(Fail{absl::UnavailableError("all failed")});
    world.publish(Fail{absl::UnavailableError("all refused")});
    world.publish(world.complete());
    CHECK(observer->events() ==
          "pick /a.b/C, call's delay connecting, delay ends, "
          "call's delay picker_failing_with_wait_for_ready, reason, delay ends, ends 0");
    CHECK(observer->reasons() == std::vector<std::string>{"cluster c: no connection yet",
                                                          "cluster c: all failed",
                                                          "cluster c: all refused"});
  }
  SECTION("too late") {
    begin()->end();
    CHECK(observer->events() == "pick /a.b/C, call's delay resolving, delay ends, ends 4");
    CHECK(observer->reasons() == std::vector<std::string>{"waiting for a configuration"});
  }
  SECTION("dropped") {
    begin();
    world.publish(Drop{absl::ResourceExhaustedError("too many")});
    CHECK(observer->events() == "pick /a.b/C, call's delay resolving, delay ends, ends 8");
  }
  SECTION("cancelled") {
    CHECK(begin()->cancel());
    CHECK(observer->events() == "pick /a.b/C, call's delay resolving, delay ends, ends 1");
  }
  CHECK_FALSE(observer->went_back());
}

TEST_CASE("waiting_pick: one that is cancelled is never told, and lets go", "[channel][pick]") {
  World world;
  auto pick = world.begin();
  CHECK(pick->cancel());
  CHECK_FALSE(pick->cancel());
  CHECK(world.waiting->size() == 0);
  world.publish(world.complete());
  pick->end();
  CHECK(world.ended.empty());
  const std::weak_ptr<TestPick> gone = pick;
  pick.reset();
  CHECK(gone.expired());
}

TEST_CASE("waiting_pick: may be cancelled, in vain, by whom it tells", "[channel][pick]") {
  World world;
  std::shared_ptr<TestPick> pick;
  bool cancelled = true;
  pick = std::make_shared<TestPick>(world.waiting,
                                    world.fixture.router,
                                    world.callers,
                                    lb::CallArgs{"/a.b/C", nullptr, 7},
                                    OnFail::kReturn,
                                    lb::Pick(),
                                    [&](const lb::Pick&) { cancelled = pick->cancel(); });
  pick->begin();
  world.publish(world.complete());
  CHECK_FALSE(cancelled);
}

TEST_CASE("waiting_pick: the route's timeout limits it once it is known",
          "[channel][pick][A31-24]") {
  World world;
  world.action.max_stream_duration = 5s;
  const auto unrouted = world.begin();
  CHECK(unrouted->limits == std::vector<Instant>{kNow + 1h});
  world.publish(Queue{});
  world.publish(Queue{});
  CHECK(unrouted->limits == std::vector<Instant>{kNow + 1h, kNow + 5s});
  const auto routed = world.begin();
  world.publish(Queue{});
  CHECK(routed->limits == std::vector<Instant>{kNow + 5s});
}

TEST_CASE("waiting_pick: is delayed once its route is known, and no publication ends that",
          "[channel][pick][A33]") {
  World world;
  world.chain = {testing::filter("fault", testing::delaying(1h))};
  const Instant before = std::chrono::steady_clock::now();
  const auto pick = world.begin();
  CHECK(pick->limits.size() == 1);
  world.publish(world.complete());
  CHECK(pick->limits.size() == 2);  // limit() sets the timer of the delay, too.
  world.publish(world.complete());
  CHECK(world.ended.empty());
  SECTION("but its own end does") {
    pick->end();
    REQUIRE(world.ended.size() == 1);
    CHECK(world.ended[0].outcome() == PickOutcome::kQueue);
    CHECK(world.ended[0].delay() == 1h);
    CHECK(world.ended[0].due() >= before + 1h);
  }
  SECTION("and that of the runtime") {
    world.fixture.publish(std::nullopt, nullptr, absl::UnavailableError("shut down"));
    world.waiting->close();
    REQUIRE(world.ended.size() == 1);
    CHECK(world.ended[0].outcome() == PickOutcome::kFail);
    CHECK(world.ended[0].status() == absl::UnavailableError("cluster c: shut down"));
  }
}

TEST_CASE("waiting_pick: of deadline and timeout the sooner one counts",
          "[channel][pick][A31-24]") {
  World world;
  const auto until = [&](std::optional<Duration> timeout, Instant deadline) {
    world.action.max_stream_duration = timeout;
    world.store(Queue{});
    return limited(deadline, kNow, world.fixture.router.pick({"/a.b/C", nullptr, 7}));
  };
  CHECK(until(std::nullopt, kNow + 3s) == kNow + 3s);
  CHECK(until(5s, kNow + 3s) == kNow + 3s);
  CHECK(until(2s, kNow + 3s) == kNow + 2s);
  CHECK(until(2s, Instant::max()) == kNow + 2s);
  CHECK(until(Duration::max(), Instant::max()) == Instant::max());
  CHECK(until(2s, kNow - 1s) == kNow - 1s);
  CHECK(until(2s, Instant::min()) == Instant::min());
}

TEST_CASE("pick: is as small as its header says", "[channel][pick]") {
  CHECK(sizeof(lb::Pick) <= 256);
}

}  // namespace signalbox::channel::waiting_pick_test
