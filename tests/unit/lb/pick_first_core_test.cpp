// SPDX-License-Identifier: Apache-2.0
//
// PickFirst beyond its gRFCs. tests/spec has their rules (a61_dualstack_test, a62_pick_first_test).
#include "lb/leaf/pick_first_core.hpp"

#include <map>
#include <string>

#include <catch2/catch.hpp>

#include "tests/support/printed.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/lb/pick_first_story.hpp"

using namespace signalbox;
using namespace signalbox::test;
using lb::PickFirst;

namespace {

using Texts = std::vector<std::string>;
using WhenLost = PickFirst::WhenLost;

}  // namespace

// --- Happy Eyeballs -----------------------------------------------------------

TEST_CASE("PickFirst: an attempt that ends without a word is begun again", "[lb][pick_first]") {
  check({
      "update a -> acquire a",
      "idle a -> connect a",
      "connecting a -> ",
      "idle a -> connect a",
      "failed a -> re-resolve, TRANSIENT_FAILURE",
  });
}

// --- errors -----------------------------------------------------------------------

TEST_CASE("PickFirst: the error is that of an address of the list", "[lb][pick_first][A62]") {
  Story story{PickFirst(WhenLost::kGoIdle)};
  check(story,
        {
            "update a b -> acquire a, acquire b",
            "idle a -> ",
            "idle b -> connect a, timer attempt/a 0.25s",
            "failed a -> connect b",
            "failed b -> re-resolve, TRANSIENT_FAILURE",
        });
  CHECK(story.first().status().message() ==
        "failed to connect to all 2 addresses; last error: b: refused");
  SECTION("also if the address that failed last is left out") {
    check(story, {"update a -> release b, re-resolve"});
    CHECK(story.first().status().message() == "a: refused");
  }
  SECTION("of the newest that is left") {
    check(story, {"update a b c -> acquire c", "failed c -> re-resolve"});
    check(story, {"update c a -> release b, re-resolve"});
    CHECK(story.first().status().message() ==
          "failed to connect to all 2 addresses; last error: c: refused");
  }
  SECTION("of the list's last one if the newest is left out") {
    check(story, {"update a b c -> acquire c", "failed c -> re-resolve"});
    check(story, {"update a b -> release c, re-resolve"});
    CHECK(story.first().status().message() ==
          "failed to connect to all 2 addresses; last error: b: refused");
  }
}

TEST_CASE("PickFirst: an error names its address once", "[lb][pick_first]") {
  const auto [why, text] = GENERATE(table<std::string, std::string>({
      {"refused", "10.0.0.1:80: refused"},
      {"10.0.0.1:80: refused", "10.0.0.1:80: refused"},
      {"no route to 10.0.0.1:80 from here", "no route to 10.0.0.1:80 from here"},
      {"10.0.0.1:8080: refused", "10.0.0.1:80: 10.0.0.1:8080: refused"},
  }));
  PickFirst first(WhenLost::kGoIdle);
  LbEffects effects;
  first.update({Address("10.0.0.1:80")}, effects);
  SubchannelStateChanged failed;
  failed.address = Address("10.0.0.1:80");
  failed.state = kFailure;
  failed.status = absl::UnavailableError(why);
  first.observe(failed, effects);
  CHECK(first.status() == absl::UnavailableError(text));
}

TEST_CASE("PickFirst: a first list without addresses fails at once", "[lb][pick_first]") {
  check({"update -> re-resolve, TRANSIENT_FAILURE"});
}

// --- idle -----------------------------------------------------------------------

TEST_CASE("PickFirst: when its connection is lost it is IDLE until it is woken",
          "[lb][pick_first][A61]") {
  check({
      "wake -> ",  // There is no list yet.
      "update b -> acquire b",
      "wake -> ",
      "idle b -> connect b",
      "ready b -> READY",
      "idle b -> re-resolve, release b, IDLE",
      "update c -> ",
      "update c d -> ",
      "update c -> ",
      "wake -> acquire c, CONNECTING",
      "stop -> release c",
  });
}

TEST_CASE("PickFirst: a lost connection is made again where that is wanted",
          "[lb][pick_first][A61]") {
  Story story{PickFirst(WhenLost::kReconnect)};
  check(story,
        {
            "update a b -> acquire a, acquire b",
            "idle a -> ",
            "ready b -> release a, READY",
            "idle b -> re-resolve, acquire a, CONNECTING",
            "idle a -> connect a, timer attempt/a 0.25s",
            "time -> connect b",
        });
}

// --- timers -----------------------------------------------------------------------

TEST_CASE("PickFirst: a timer says whose it is", "[lb][pick_first]") {
  CHECK(PickFirst::address_of({"attempt/[::1]:80", 3}) == Address("[::1]:80"));
  CHECK(PickFirst::address_of({"failover/a", 3}).empty());
}

// --- in any history ---------------------------------------------------------------

namespace {

/// A PickFirst in a random history. Its subchannels keep to their states, the network answers at
/// random, and timers fire in any order.
class History {
 public:
  explicit History(std::uint64_t seed)
      : seed_(seed), first_(below(2) == 0 ? WhenLost::kGoIdle : WhenLost::kReconnect) {
    update(some_list());
  }

  void step() {
    switch (below(12)) {
      case 0:
        return update(some_list());
      case 1:
        return wake();
      case 2:
      case 3:
        if (!timers_.empty()) fire(timers_[below(timers_.size())]);
        return;
      default:
        if (!held_.empty()) move_on(std::next(held_.begin(), std::ptrdiff_t(below(held_.size()))));
    }
  }

  void check_invariants() const {
    if (first_.state() == kIdle) RC_ASSERT(held_.empty());
    if (first_.state() == kReady) RC_ASSERT(held_.size() == 1U);
  }

  /// From now on one address answers. Address "b", unless it is that one, refuses late. All others
  /// refuse at once.
  void settle() {
    const Texts list{"a", "b", "[c]"};
    const std::string good = list[below(list.size())];
    update(list);
    wake();
    for (int round = 0; round < 20 && first_.state() != kReady; ++round) {
      for (const auto& [address, state] : std::map(held_)) {
        if (held_.contains(address) && held_[address] == kFailure) say("idle", address);
        if (!held_.contains(address) || held_[address] != kConnecting) continue;
        if (address == good) {
          say("ready", address);
        } else if (address != "b" || round % 5 == 4) {
          say("failed", address);
        }
      }
      for (const TimerId& timer : std::exchange(timers_, {}))
        fire(timer);
    }
    RC_ASSERT(first_.state() == kReady);
  }

 private:
  std::uint64_t below(std::uint64_t bound) {
    return draw_below(seed_, Salt::kEndpoint, bound, ++draws_);
  }

  Texts some_list() {
    Texts list;
    for (const char* address : {"a", "b", "[c]", "[d]", "e"}) {
      if (below(2) == 0) list.emplace_back(address);
    }
    return list;
  }

  void move_on(std::map<std::string, ConnectivityState>::iterator at) {
    const auto [address, state] = *at;
    if (state == kFailure || state == kReady) say("idle", address);
    if (state != kConnecting) return;
    const char* const words[] = {"connecting", "ready", "failed", "failed"};
    say(words[below(4)], address);
  }

  void say(const std::string& word, const std::string& address) {
    const SubchannelStateChanged change = change_of(word, address);
    held_[address] = change.state;
    LbEffects effects;
    first_.observe(change, effects);
    run(effects);
  }

  void update(const Texts& list) {
    LbEffects effects;
    first_.update({list.begin(), list.end()}, effects);
    run(effects);
  }

  void wake() {
    LbEffects effects;
    first_.exit_idle(effects);
    run(effects);
  }

  void fire(const TimerId& timer) {
    LbEffects effects;
    first_.fire(timer, effects);
    run(effects);
  }

  void run(const LbEffects& effects) {
    // By I1 of pick_first_core.hpp, CONNECTING never follows TRANSIENT_FAILURE.
    if (has_failed_) RC_ASSERT(first_.state() != kConnecting);
    has_failed_ = first_.state() == kFailure;
    Texts acquired;
    for (const LbEffect& effect : effects) {
      if (const auto* acquire = std::get_if<AcquireSubchannel>(&effect)) {
        RC_ASSERT(held_.emplace(acquire->address.str(), kIdle).second);
        acquired.push_back(acquire->address.str());
      } else if (const auto* release = std::get_if<ReleaseSubchannel>(&effect)) {
        RC_ASSERT(held_.erase(release->address.str()) == 1U);
      } else if (const auto* connect = std::get_if<Connect>(&effect)) {
        ConnectivityState& state = held_.at(connect->address.str());
        if (state == kIdle) state = kConnecting;
      } else if (const auto* start = std::get_if<StartTimer>(&effect)) {
        timers_.push_back(start->timer);
      }
    }
    for (const std::string& address : acquired) {
      if (held_.contains(address) && held_[address] == kIdle) say("idle", address);
    }
  }

  const std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  PickFirst first_;
  std::map<std::string, ConnectivityState> held_;
  std::vector<TimerId> timers_;
  bool has_failed_ = false;  ///< The state was TRANSIENT_FAILURE.
};

}  // namespace

TEST_CASE("PickFirst: whatever happened before, it ends READY if some address can be reached",
          "[lb][pick_first][A61][A62]") {
  CHECK(test::holds("liveness", 1'000, [](std::uint64_t seed) {
    History history(seed);
    for (int event = 0; event < 120; ++event) {
      history.step();
      history.check_invariants();
    }
    history.settle();
  }));
}
