// SPDX-License-Identifier: Apache-2.0
//
// The subchannel map's keeper of sessions (I9 in subchannel_map_core.hpp): the connections that are
// held for sessions, and for how long.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/subchannel/subchannel_map_core.hpp"
#include "messages/overloaded.hpp"
#include "tests/support/property.hpp"

namespace signalbox::lb {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

Holder holder(const std::string& path, std::uint64_t incarnation = 1) {
  return {PolicyPath(path), {incarnation}};
}

const Holder kKeeper = holder("k");
const Holder kChild = holder("k/child");
const Holder kOther = holder("k/other");

/// One map, its keeper's marks, and its effects.
class Map {
 public:
  Texts step(const SubchannelMapEvent& event) {
    Texts texts;
    for (const SubchannelMapEffect& effect : core.step(event, now)) {
      if (std::string text = to_text(effect); !text.empty()) texts.push_back(std::move(text));
    }
    core.check_invariants();
    return texts;
  }

  Texts acquire(const std::string& address, const Holder& by = kChild) {
    return step(SubchannelAcquired{by, Address(address)});
  }

  Texts release(const std::string& address, const Holder& by = kChild) {
    return step(SubchannelReleased{by, Address(address)});
  }

  Texts tell(const std::string& address, ConnectivityState state) {
    SubchannelStateChanged told;
    told.address = Address(address);
    told.state = state;
    if (state == ConnectivityState::kReady)
      told.connection = std::make_shared<const Connection>(Address(address));
    return step(told);
  }

  /// Lets sessions stay on these addresses; "!" means DRAINING. An address keeps its mark while it
  /// is named.
  Texts keep(const Texts& addresses, const Holder& keeper = kKeeper, Duration idle = 60s) {
    SessionMarks table;
    for (std::string address : addresses) {
      const bool draining = address.back() == '!';
      if (draining) address.pop_back();
      const auto known = marks.find(address);
      table[Address(address)] = {
          known == marks.end() ? std::make_shared<const SessionMark>() : known->second, draining};
    }
    marks.clear();
    for (const auto& [address, host] : table)
      marks[address.str()] = host.mark;
    return step(SessionsKept{keeper, idle, std::make_shared<const SessionMarks>(table)});
  }

  Texts sweep() { return step(SweepAsked{}); }

  void use(const std::string& address) { marks.at(address)->touch(now); }

  Instant now{1h};
  SubchannelMapCore core;
  std::map<std::string, SessionMarkPtr> marks;
  std::set<std::string> living;
  std::int64_t held = 0;  ///< Connections that are held for sessions, as observed.
  EndpointCounts counts{};

 private:
  std::string to_text(const SubchannelMapEffect& effect) {
    return std::visit(
        Overloaded{
            [&](const SpawnSubchannel& it) {
              CHECK(living.insert(it.address.str()).second);
              return "spawn " + it.address.str();
            },
            [&](const StopSubchannel& it) {
              CHECK(living.erase(it.address.str()) == 1);
              return "stop " + it.address.str();
            },
            [](const ConnectSubchannel& it) { return "connect " + it.address.str(); },
            [](const LimitConnections& it) {
              return absl::StrCat("limit ", it.address.str(), " ", it.max_connections);
            },
            [](const NotifyHolder& it) {
              return absl::StrCat("tell ",
                                  it.holder.path.str(),
                                  "#",
                                  it.holder.incarnation.back(),
                                  " ",
                                  it.state.address.str(),
                                  " ",
                                  to_string(it.state.state));
            },
            [](const NotifyGone& it) {
              return absl::StrCat("gone ",
                                  it.holder.path.str(),
                                  "#",
                                  it.holder.incarnation.back(),
                                  " ",
                                  it.address.str());
            },
            [](const ArmSweeper& it) {
              return it.idle_timeout ? absl::StrCat("arm ", *it.idle_timeout / 1s, "s") : "disarm";
            },
            [&](const FinishSweep& it) {
              return it.next_due == Instant::max()
                         ? std::string("next never")
                         : absl::StrCat("next in ", (it.next_due - now) / 1s, "s");
            },
            [](const StartHealthChecks& it) { return "probe " + it.address.str(); },
            [](const StopHealthChecks& it) { return "probe no more " + it.address.str(); },
            [&](const Observe& it) { return to_text(it.observation); },
        },
        effect);
  }

  std::string to_text(const Observation& observation) {
    if (const auto* seen = std::get_if<SessionsHeld>(&observation)) {
      CHECK(seen->before == held);
      held = seen->held;
    }
    if (const auto* seen = std::get_if<EndpointsCounted>(&observation)) counts = seen->by_state;
    const auto* swept = std::get_if<SessionsSwept>(&observation);
    return swept == nullptr ? "" : absl::StrCat("swept ", swept->released);
  }
};

/// A map with address "a": it is READY, the child holds it, and sessions may stay there.
struct Kept : Map {
  Kept() {
    keep({"a"});
    acquire("a");
    tell("a", ConnectivityState::kReady);
  }
};

std::int64_t count(const Map& map, EndpointState state) {
  return map.counts[static_cast<std::size_t>(state)];
}

}  // namespace

TEST_CASE("keeper: it hears how each address of its table is, whoever holds it, first of all",
          "[lb][subchannel_map][A75-24][A55-27]") {
  Map map;
  CHECK(map.acquire("a") == Texts{"spawn a", "tell k/child#1 a IDLE"});
  CHECK(map.keep({"a", "b"}) == Texts{"tell k#1 a IDLE", "arm 60s"});
  CHECK(map.tell("a", ConnectivityState::kReady) ==
        Texts{"tell k#1 a READY", "tell k/child#1 a READY"});
  CHECK(map.acquire("b") == Texts{"spawn b", "tell k#1 b IDLE", "tell k/child#1 b IDLE"});
  CHECK(map.acquire("b", kOther) == Texts{"tell k/other#1 b IDLE"});
  CHECK(map.acquire("c") == Texts{"spawn c", "tell k/child#1 c IDLE"});
  map.release("b", kOther);
  SECTION("and when nobody holds it any more") {
    CHECK(map.release("b") == Texts{"stop b", "gone k#1 b"});
    CHECK(map.release("c") == Texts{"stop c"});
  }
  SECTION("what is new in its table is told; what was told is not told again") {
    CHECK(map.keep({"a", "b", "c", "d"}) == Texts{"tell k#1 c IDLE", "gone k#1 d", "arm 60s"});
  }
  SECTION("what has left the table and is in it again is told anew") {
    map.keep({"a"});
    map.release("b");
    CHECK(map.keep({"a", "b"}) == Texts{"gone k#1 b", "arm 60s"});
  }
  SECTION("what is found of its health, too") {
    const UnhealthyEndpoints ejected{{Address("a"), absl::UnavailableError("ejected")}};
    CHECK(map.step(EndpointHealthChanged{HealthJudge::kOutlierDetection,
                                         std::make_shared<const UnhealthyEndpoints>(ejected)}) ==
          Texts{"tell k#1 a READY", "tell k/child#1 a READY"});
  }
}

TEST_CASE("keeper: a connection that a session used lately is held when the last other lets go",
          "[lb][subchannel_map][A75-34]") {
  Kept map;
  SECTION("used within the idle timeout: the same connection, without a moment unheld") {
    map.use("a");
    map.now += 59s;
    CHECK(map.release("a").empty());
    CHECK(map.held == 1);
    CHECK(map.living.contains("a"));
    CHECK(map.tell("a", ConnectivityState::kIdle) == Texts{"tell k#1 a IDLE"});
  }
  SECTION("used too long ago") {
    map.use("a");
    map.now += 60s;
    CHECK(map.release("a") == Texts{"stop a", "gone k#1 a"});
  }
  SECTION("never used: its last use is infinitely past") {  // A75-26, A75-28.
    CHECK(map.release("a") == Texts{"stop a", "gone k#1 a"});
  }
  SECTION("while others hold it, it is not the keeper's") {
    map.use("a");
    map.acquire("a", kOther);
    map.release("a");
    CHECK(map.held == 0);
    map.release("a", kOther);
    CHECK(map.held == 1);
  }
  SECTION("also where the holder died, and its successor does not want it") {
    map.use("a");
    map.step(HolderGone{kChild, true});
    CHECK(map.held == 0);
    map.step(HolderSettled{holder("k/child", 2)});
    CHECK(map.held == 1);
  }
  SECTION("also where it has lingered for a generation") {
    map.step(MapGenerationStarted{{ClusterName("c")}, 1});
    map.release("a");
    map.use("a");
    CHECK(map.held == 0);
    CHECK(map.step(MapGenerationApplied{1}).empty());
    CHECK(map.held == 1);
    CHECK(map.living.contains("a"));
  }
}

TEST_CASE("keeper: a connection is its own or others', never both",
          "[lb][subchannel_map][A75-25][A75-35]") {
  Kept map;
  map.use("a");
  map.release("a");
  REQUIRE(map.held == 1);
  SECTION("whoever acquires it has it, the same, from that step on") {
    CHECK(map.acquire("a", kOther) == Texts{"tell k/other#1 a READY"});
    CHECK(map.held == 0);
    CHECK(map.living.contains("a"));
  }
  SECTION("what is others' cannot be acquired for sessions") {
    map.acquire("a", kOther);
    CHECK(map.acquire("a", kKeeper) == Texts{"tell k#1 a READY"});
    CHECK(map.held == 0);
  }
}

TEST_CASE("keeper: what a session waits for is created, once",
          "[lb][subchannel_map][A75-37][A75-38]") {
  Map map;
  map.keep({"a"});
  CHECK(map.acquire("a", kKeeper) == Texts{"spawn a", "tell k#1 a IDLE"});
  CHECK(map.acquire("a", kKeeper) == Texts{"tell k#1 a IDLE"});
  CHECK(map.held == 1);
  CHECK(map.step(SubchannelConnectAsked{Address("a")}) == Texts{"connect a"});
  SECTION("not where the address has gone from the table") {
    CHECK(map.acquire("b", kKeeper).empty());
    CHECK(map.living.size() == 1);
  }
  SECTION("out of what lingers, the connection is the same") {
    map.acquire("a");
    map.step(MapGenerationStarted{{ClusterName("c")}, 1});
    map.release("a");
    CHECK(map.acquire("a", kKeeper) == Texts{"tell k#1 a IDLE"});
    CHECK(map.held == 1);
    CHECK(map.step(MapGenerationApplied{1}).empty());
  }
}

TEST_CASE("keeper: what leaves the table is held no more", "[lb][subchannel_map][A75-36]") {
  Kept map;
  map.use("a");
  map.release("a");
  CHECK(map.keep({"b"}) == Texts{"gone k#1 b", "arm 60s", "stop a"});
  CHECK(map.held == 0);
}

TEST_CASE("keeper: a sweep releases what no session used within the idle timeout",
          "[lb][subchannel_map][A75-29][A75-30][A75-33]") {
  Map map;
  map.keep({"a", "b", "c", "d"});
  for (const char* address : {"a", "b", "c"})
    map.acquire(address);
  for (const char* address : {"a", "b", "c"})
    map.use(address);
  map.release("a");
  map.release("b");
  map.acquire("d", kKeeper);  // Created for a call that never used it.
  REQUIRE(map.held == 3);
  map.now += 20s;
  map.use("b");
  SECTION("which is at the limit, too; the child's it leaves alone") {
    map.now += 40s;
    CHECK(map.sweep() ==
          Texts{"swept 2", "next in 20s", "stop a", "gone k#1 a", "stop d", "gone k#1 d"});
    CHECK(map.living == std::set<std::string>{"b", "c"});
    CHECK(map.held == 1);
  }
  SECTION("not before") {
    map.now += 39s;
    CHECK(map.sweep() == Texts{"swept 1", "next in 1s", "stop d", "gone k#1 d"});
  }
  SECTION("where none was used, the next is an idle timeout away") {
    map.now += 60s;
    const Texts texts = map.sweep();
    REQUIRE(texts.size() > 2);
    CHECK(texts[0] == "swept 3");
    CHECK(texts[1] == "next in 60s");
    CHECK(map.living == std::set<std::string>{"c"});
  }
  SECTION("with an idle timeout of nothing, everything is idle") {  // A75-21.
    map.keep({"a", "b", "c", "d"}, kKeeper, 0s);
    CHECK(map.sweep().front() == "swept 3");
    CHECK(map.release("c") == Texts{"stop c", "gone k#1 c"});
  }
  SECTION("with the longest there is, nothing") {  // A75-19.
    map.keep({"a", "b", "c", "d"}, kKeeper, Duration::max());
    CHECK(map.sweep() == Texts{"swept 1", "next never", "stop d", "gone k#1 d"});
  }
  SECTION("where nobody keeps sessions, there is nothing to sweep") {
    map.step(SessionsKept{kKeeper, 60s, nullptr});
    CHECK(map.sweep().empty());
  }
}

TEST_CASE("keeper: who keeps sessions no longer holds nothing",
          "[lb][subchannel_map][A75-40][A55-25]") {
  Kept map;
  map.use("a");
  map.release("a");
  REQUIRE(map.held == 1);
  const bool says_so = GENERATE(true, false);
  if (says_so) {
    CHECK(map.step(SessionsKept{kKeeper, 60s, nullptr}) == Texts{"disarm", "stop a"});
  } else {
    CHECK(map.step(HolderGone{kKeeper, false}) == Texts{"disarm", "stop a"});
  }
  CHECK(map.held == 0);
  CHECK(map.acquire("a") == Texts{"spawn a", "tell k/child#1 a IDLE"});
}

TEST_CASE("keeper: its successor goes on where it died", "[lb][subchannel_map][A75-24]") {
  Kept map;
  map.acquire("b");
  map.use("a");
  map.release("a");
  CHECK(map.step(HolderGone{kKeeper, true}).empty());
  CHECK(map.held == 1);
  CHECK(map.tell("a", ConnectivityState::kIdle).empty());  // No holder hears of the change.
  const SessionMarkPtr before = map.marks.at("a");
  SECTION("it is told of all that there is, and inherits when it was used") {
    map.marks.clear();
    CHECK(map.keep({"a", "b", "c"}, holder("k", 2)) ==
          Texts{"tell k#2 a IDLE", "tell k#2 b IDLE", "arm 60s"});
    CHECK(map.marks.at("a") != before);
    CHECK(map.marks.at("a")->last_used() == before->last_used());
    CHECK(map.step(HolderSettled{holder("k", 2)}).empty());
    CHECK(map.held == 1);
    map.now += 60s;
    CHECK(map.sweep() == Texts{"swept 1", "next in 60s", "stop a", "gone k#2 a"});
  }
  SECTION("it comes before the news of the death") {
    Kept other;
    other.use("a");
    other.release("a");
    other.keep({"a"}, holder("k", 2));
    other.step(HolderGone{kKeeper, true});
    other.step(HolderSettled{holder("k", 2)});
    CHECK(other.held == 1);
  }
  SECTION("meanwhile others may take what it held, and leave it") {
    map.acquire("a", kOther);
    CHECK(map.held == 0);
    CHECK(map.release("a", kOther).empty());
    CHECK(map.held == 1);
  }
  SECTION("a successor that keeps none has settled: all is released") {
    CHECK(map.step(HolderSettled{holder("k", 2)}) == Texts{"disarm", "stop a"});
  }
  SECTION("where none comes for a generation, all is released") {
    map.step(MapGenerationStarted{{ClusterName("c")}, 1});
    CHECK(map.held == 1);
    CHECK(map.step(MapGenerationApplied{1}) == Texts{"disarm", "stop a"});
  }
  SECTION("what it said before is late") {
    map.keep({"a"}, holder("k", 2));
    CHECK(map.keep({"b"}, kKeeper).empty());
    CHECK(map.held == 1);
  }
}

TEST_CASE("keeper: its successor takes again what no call has used yet: some may wait for it",
          "[lb][subchannel_map][A75-24][A75-37]") {
  Map map;
  map.keep({"a"});
  map.acquire("a", kKeeper);
  CHECK(map.step(HolderGone{kKeeper, true}).empty());
  map.keep({"a"}, holder("k", 2));
  CHECK(map.step(HolderSettled{holder("k", 2)}).empty());
  CHECK(map.held == 1);
  CHECK(map.living.contains("a"));
}

TEST_CASE("keeper: the newest one keeps", "[lb][subchannel_map]") {
  Kept map;
  map.use("a");
  map.release("a");
  REQUIRE(map.held == 1);
  const Texts texts = map.keep({"a"}, holder("k~2"));
  CHECK(texts == Texts{"tell k~2#1 a READY", "arm 60s"});
  CHECK(map.held == 1);
  CHECK(map.step(HolderGone{kKeeper, false}).empty());
  CHECK(map.held == 1);
  CHECK(map.living.contains("a"));
}

TEST_CASE("keeper: endpoints that drain are counted as such", "[lb][subchannel_map][metrics]") {
  Kept map;
  map.use("a");
  map.acquire("b");
  CHECK(count(map, EndpointState::kReady) == 1);
  map.keep({"a!"});
  map.release("a");
  CHECK(count(map, EndpointState::kReady) == 0);
  CHECK(count(map, EndpointState::kDraining) == 1);
  map.keep({"a"});
  CHECK(count(map, EndpointState::kReady) == 1);
  CHECK(count(map, EndpointState::kDraining) == 0);
}

TEST_CASE("keeper: who drains is counted as long as it is told so",
          "[lb][subchannel_map][metrics]") {
  Map map;
  map.acquire("a");
  map.tell("a", ConnectivityState::kReady);
  map.keep({"a!"});
  CHECK(count(map, EndpointState::kDraining) == 1);
  SECTION("it is in the table no longer") {
    map.keep({"b"});
  }
  SECTION("there is no table any more") {
    map.step(SessionsKept{kKeeper, 60s, nullptr});
  }
  CHECK(count(map, EndpointState::kDraining) == 0);
  CHECK(count(map, EndpointState::kReady) == 1);
}

TEST_CASE("keeper: of a new table operators see the endpoints that change their state",
          "[lb][subchannel_map][status]") {
  Map map;
  map.acquire("a");
  map.acquire("b");
  const auto changed = [&] {
    Texts names;
    for (const auto& [address, seen] : map.core.take_changes())
      names.push_back(address.str());
    std::ranges::sort(names);
    return names;
  };
  map.keep({"a", "b!"});
  CHECK(changed() == Texts{"b"});
  map.keep({"a", "b!"});
  CHECK(changed().empty());
  map.keep({"a!", "b"});
  CHECK(changed() == Texts{"a", "b"});
  map.step(SessionsKept{kKeeper, 60s, nullptr});
  CHECK(changed() == Texts{"a"});
}

TEST_CASE("keeper: who becomes it holds nothing that others hold", "[lb][subchannel_map][A75-25]") {
  Map map;
  map.acquire("a", kKeeper);
  map.acquire("b", kKeeper);
  map.acquire("a");
  map.keep({"a", "b"});
  CHECK(map.held == 1);  // "b"; the child holds "a".
  CHECK(map.release("a") == Texts{"stop a", "gone k#1 a"});
}

TEST_CASE("keeper: what it is told is in the order of addresses", "[lb][subchannel_map]") {
  Map map;
  Texts addresses;
  Texts expected;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    addresses.emplace_back(1, letter);
    map.acquire(addresses.back());
    expected.push_back(absl::StrCat("tell k#1 ", addresses.back(), " IDLE"));
  }
  expected.emplace_back("arm 60s");
  CHECK(map.keep(addresses) == expected);
}

// The map checks its invariants (subchannel_map_core.hpp) after every step. In addition, the test
// checks that no step stops the subchannel of an address that a session used in the last 60 s.
TEST_CASE("keeper: whatever happens, no session that is in use loses its connection",
          "[lb][subchannel_map][A75-34][A75-35]") {
  const auto names = Texts{"a", "b", "c"};
  CHECK(signalbox::test::holds("sessions in use", 300, [&](const std::vector<int>& choices) {
    Map map;
    map.keep(names);
    std::map<std::string, Instant> used;
    for (const int choice : choices) {
      const auto at = static_cast<unsigned>(choice);
      const std::string& address = names[at % 3];
      const Holder& who = (at / 3) % 2 == 0 ? kChild : kOther;
      const std::set<std::string> before = map.living;
      switch ((at / 6) % 6) {
        case 0:
          map.acquire(address, who);
          break;
        case 1:
          map.release(address, who);
          break;
        case 2:
          map.use(address);
          used[address] = map.now;
          break;
        case 3:
          map.now += std::chrono::seconds(at % 40);
          break;
        case 4:
          map.sweep();
          break;
        default:
          map.acquire(address, kKeeper);
          break;
      }
      for (const std::string& name : before) {
        const bool in_use = used.contains(name) && map.now - used[name] < 60s;
        RC_ASSERT(!in_use || map.living.contains(name));
      }
    }
  }));
}

}  // namespace signalbox::lb
