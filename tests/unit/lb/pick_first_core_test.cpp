// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of PickFirst: each line is an event and its effects.
#include "lb/leaf/pick_first_core.hpp"

#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include <catch2/catch.hpp>

#include "tests/support/policy_harness.hpp"
#include "tests/support/property.hpp"

using namespace signalbox;
using namespace signalbox::test;
using lb::PickFirst;

namespace {

using Texts = std::vector<std::string>;
using WhenLost = PickFirst::WhenLost;
using Health = PickFirst::Health;

SubchannelStateChanged change_of(const std::string& word, const std::string& address) {
  SubchannelStateChanged change;
  change.address = Address(address);
  if (word == "connecting") change.state = kConnecting;
  if (word == "failed") {
    change.state = kFailure;
    change.status = absl::UnavailableError("refused");
  }
  if (word == "ready" || word == "unhealthy") {
    change.state = kReady;
    change.connection = std::make_shared<const Connection>(change.address);
  }
  if (word == "unhealthy") {
    change.healthy = false;
    change.status = absl::UnavailableError("ejected");
  }
  return change;
}

/// One PickFirst that gets events in words: "update a b", "idle a", "time", "late", "wake".
class Story {
 public:
  explicit Story(PickFirst first) : first_(std::move(first)) {}

  /// The effects of the event, then the state if it changed.
  std::string tell(const std::string& line) {
    const Texts words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const ConnectivityState before = first_.state();
    LbEffects effects;
    if (words[0] == "update") {
      first_.update({words.begin() + 1, words.end()}, effects);
    } else if (words[0] == "wake") {
      first_.exit_idle(effects);
    } else if (words[0] == "stop") {
      first_.release_all(effects);
    } else if (words[0] == "time") {  // The delay that was begun last is over.
      first_.fire(timers_.back(), effects);
    } else if (words[0] == "late") {  // One that was begun before it is over, too.
      first_.fire(timers_.front(), effects);
    } else {
      first_.observe(change_of(words[0], words[1]), effects);
    }
    Texts texts;
    for (const LbEffect& effect : effects) {
      texts.push_back(to_text(effect));
      if (const auto* start = std::get_if<StartTimer>(&effect)) timers_.push_back(start->timer);
    }
    if (first_.state() != before) texts.emplace_back(to_string(first_.state()));
    return absl::StrJoin(texts, ", ");
  }

  const PickFirst& first() const { return first_; }

  const std::vector<TimerId>& timers() const { return timers_; }

 private:
  PickFirst first_;
  std::vector<TimerId> timers_;
};

/// Lines of "event -> what it led to".
void check(Story& story, const Texts& lines) {
  for (const std::string& line : lines) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits("->", 1));
    INFO(line);
    CHECK(story.tell(parts[0]) == std::string(absl::StripAsciiWhitespace(parts[1])));
  }
}

void check(const Texts& lines) {
  Story story{PickFirst(WhenLost::kGoIdle)};
  check(story, lines);
}

}  // namespace

// --- Happy Eyeballs -----------------------------------------------------------

TEST_CASE("PickFirst: an attempt that takes long is joined by the next, and goes on",
          "[lb][pick_first][A61]") {
  check({
      "update a b c -> acquire a, acquire b, acquire c",
      "idle a -> ",
      "idle b -> ",
      "idle c -> connect a, timer attempt/a 0.25s",
      "connecting a -> ",
      "time -> connect b, timer attempt/b 0.25s",
      "connecting b -> ",
      "time -> connect c",  // No address waits behind the last one.
      "connecting c -> ",
      "ready a -> release b, release c, READY",
  });
}

TEST_CASE("PickFirst: an attempt that fails has the next begin at once", "[lb][pick_first][A61]") {
  check({
      "update a b c -> acquire a, acquire b, acquire c",
      "idle a -> ",
      "idle b -> ",
      "idle c -> connect a, timer attempt/a 0.25s",
      "connecting a -> ",
      "failed a -> connect b, timer attempt/b 0.25s",
      "late -> ",    // a's delay.
      "idle a -> ",  // Its back-off is over; its turn has passed.
      "connecting b -> ",
      "ready b -> release a, release c, READY",
      "time -> ",
  });
}

TEST_CASE("PickFirst: an earlier attempt that fails leaves the newest its time",
          "[lb][pick_first][A61]") {
  check({
      "update a b c -> acquire a, acquire b, acquire c",
      "idle a -> ",
      "idle b -> ",
      "idle c -> connect a, timer attempt/a 0.25s",
      "time -> connect b, timer attempt/b 0.25s",
      "failed a -> ",
      "time -> connect c",
      "failed c -> ",
      "failed b -> re-resolve, TRANSIENT_FAILURE",
  });
}

TEST_CASE("PickFirst: families are tried by turns", "[lb][pick_first][A61]") {
  check({
      "update [a] [b] c -> acquire [a], acquire c, acquire [b]",
      "idle [a] -> ",
      "idle [b] -> ",
      "idle c -> connect [a], timer attempt/[a] 0.25s",
      "time -> connect c, timer attempt/c 0.25s",
  });
}

TEST_CASE("PickFirst: an attempt of somebody else is waited for like our own",
          "[lb][pick_first][A61]") {
  check({
      "update a b -> acquire a, acquire b",
      "connecting a -> ",
      "idle b -> timer attempt/a 0.25s",
      "time -> connect b",
  });
}

TEST_CASE("PickFirst: an address in back-off counts as tried", "[lb][pick_first][A61]") {
  check({
      "update a b -> acquire a, acquire b",
      "failed a -> ",
      "idle b -> connect b",
      "failed b -> re-resolve, TRANSIENT_FAILURE",
  });
  check({
      "update a b -> acquire a, acquire b",
      "failed a -> ",
      "failed b -> re-resolve, TRANSIENT_FAILURE",
  });
}

TEST_CASE("PickFirst: what failed before its turn is tried all the same if it may be",
          "[lb][pick_first][A61]") {
  check({
      "update a b -> acquire a, acquire b",
      "idle a -> ",
      "idle b -> connect a, timer attempt/a 0.25s",
      "failed b -> ",
      "idle b -> ",
      "failed a -> connect b",
      "failed b -> re-resolve, TRANSIENT_FAILURE",
  });
}

TEST_CASE("PickFirst: an attempt that ends without a word is begun again", "[lb][pick_first]") {
  check({
      "update a -> acquire a",
      "idle a -> connect a",
      "connecting a -> ",
      "idle a -> connect a",
      "failed a -> re-resolve, TRANSIENT_FAILURE",
  });
}

TEST_CASE("PickFirst: the delay is cut to its bounds", "[lb][pick_first][A61]") {
  struct Row {
    Duration asked;
    std::string told;
  };

  const auto row =
      GENERATE(values<Row>({{0ms, "0.1s"}, {99ms, "0.1s"}, {300ms, "0.3s"}, {2001ms, "2s"}}));
  Story story{PickFirst(WhenLost::kGoIdle, row.asked)};
  check(story,
        {"update a b -> acquire a, acquire b",
         "idle a -> ",
         "idle b -> connect a, timer attempt/a " + row.told});
}

// --- after the pass -------------------------------------------------------------

TEST_CASE("PickFirst: after a pass each address is tried when its back-off is over",
          "[lb][pick_first][A61][A62]") {
  check({
      "update a b -> acquire a, acquire b",
      "idle a -> ",
      "idle b -> connect a, timer attempt/a 0.25s",
      "failed a -> connect b",
      "idle a -> ",
      "failed b -> re-resolve, connect a, TRANSIENT_FAILURE",
      "connecting a -> ",
      "idle b -> connect b",
      "connecting b -> ",
      "failed b -> ",
      "failed a -> re-resolve",
      "late -> ",
      "idle a -> connect a",
      "ready a -> release b, READY",
  });
}

TEST_CASE("PickFirst: after a pass it asks for better addresses once per as many failures",
          "[lb][pick_first][A62]") {
  Story story{PickFirst(WhenLost::kGoIdle)};
  check(story,
        {
            "update a b -> acquire a, acquire b",
            "failed a -> ",
            "failed b -> re-resolve, TRANSIENT_FAILURE",
        });
  const auto told = [&](const std::string& why) {
    return absl::StrContains(story.first().status().message(), why);
  };
  CHECK(told("b: refused"));
  for (int pass = 0; pass < 3; ++pass) {
    check(story, {"failed a -> "});
    CHECK(told("b: refused"));
    check(story, {"failed a -> re-resolve"});
    CHECK(told("a: refused"));
    check(story, {"failed b -> "});
    CHECK(told("a: refused"));
    check(story, {"failed b -> re-resolve"});
    CHECK(told("b: refused"));
  }
}

TEST_CASE("PickFirst: the next pass begins with the first address again", "[lb][pick_first][A61]") {
  check({
      "update a b -> acquire a, acquire b",
      "idle a -> ",
      "idle b -> connect a, timer attempt/a 0.25s",
      "failed a -> connect b",
      "ready b -> release a, READY",
      "idle b -> re-resolve, release b, IDLE",
      "wake -> acquire a, acquire b, CONNECTING",
      "idle b -> ",
      "idle a -> connect a, timer attempt/a 0.25s",
  });
}

// --- new lists ------------------------------------------------------------------

TEST_CASE("PickFirst: a new list keeps a connection whose address is in it",
          "[lb][pick_first][A61]") {
  check({
      "update a -> acquire a",
      "ready a -> READY",
      "update b a -> ",
      "update b -> acquire b, release a, CONNECTING",
  });
}

TEST_CASE("PickFirst: a new list does not end TRANSIENT_FAILURE, nor give up its pass",
          "[lb][pick_first][A62]") {
  check({
      "update a -> acquire a",
      "failed a -> re-resolve, TRANSIENT_FAILURE",
      "update b c -> acquire b, acquire c, release a",
      "idle b -> ",
      "idle c -> connect b, timer attempt/b 0.25s",
      "failed b -> connect c",
      "failed c -> re-resolve",
      "idle b -> connect b",
      "ready b -> release c, READY",
  });
}

TEST_CASE("PickFirst: lists that come quickly hold no address up", "[lb][pick_first][A61]") {
  check({
      "update a b c -> acquire a, acquire b, acquire c",
      "idle a -> ",
      "idle b -> ",
      "idle c -> connect a, timer attempt/a 0.25s",
      "connecting a -> ",
      "update a b d -> acquire d, release c",  // a's time is running, and runs on.
      "idle d -> ",
      "time -> connect b, timer attempt/b 0.25s",
      "connecting b -> ",
      "update a b c -> acquire c, release d",
      "idle c -> ",
      "time -> connect c",
      "connecting c -> ",
      "update d a b -> acquire d, release c",
      "idle d -> connect d, timer attempt/d 0.25s",
      "failed d -> ",  // a and b are under way already.
      "failed b -> ",
      "failed a -> re-resolve, TRANSIENT_FAILURE",
  });
}

TEST_CASE("PickFirst: who is waited for leaves the list, and the next has its turn",
          "[lb][pick_first][A61]") {
  check({
      "update a b -> acquire a, acquire b",
      "idle a -> ",
      "idle b -> connect a, timer attempt/a 0.25s",
      "connecting a -> ",
      "update b c -> acquire c, release a",
      "idle c -> connect b, timer attempt/b 0.25s",
      "late -> ",
      "time -> connect c",
  });
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

// --- health -----------------------------------------------------------------------

TEST_CASE("PickFirst: bad health is reported, the connection kept", "[lb][pick_first][A61]") {
  Story story{PickFirst(WhenLost::kReconnect)};
  check(story,
        {
            "update a b -> acquire a, acquire b",
            "unhealthy a -> release b, TRANSIENT_FAILURE",
            "ready a -> READY",
            "unhealthy a -> TRANSIENT_FAILURE",
        });
  CHECK(story.first().status() == absl::UnavailableError("a: ejected"));
  CHECK(story.first().connection() == nullptr);
}

TEST_CASE("PickFirst: bad health is nobody's business where there is nowhere else to go",
          "[lb][pick_first][A61]") {
  Story story{PickFirst(WhenLost::kGoIdle, 250ms, Health::kIgnored)};
  check(story, {"update a -> acquire a", "unhealthy a -> READY", "ready a -> "});
  check(story, {"unhealthy a -> "});
  CHECK(story.first().status().ok());
  CHECK(story.first().connection() != nullptr);
}

// --- timers -----------------------------------------------------------------------

TEST_CASE("PickFirst: a timer says whose it is", "[lb][pick_first]") {
  CHECK(PickFirst::address_of({"attempt/[::1]:80", 3}) == Address("[::1]:80"));
  CHECK(PickFirst::address_of({"failover/a", 3}).empty());
}

// --- in any history ---------------------------------------------------------------

namespace {

/// Subchannels that behave as subchannels do, a network that does what it likes, timers that fire
/// when they are due, or too late.
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

  /// From now on one address answers, another ("b") stays silent until its timeout, and all others
  /// refuse.
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
    if (has_failed_) RC_ASSERT(first_.state() != kConnecting);  // I1
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
  bool has_failed_ = false;  ///< Every address has, since READY.
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
