// SPDX-License-Identifier: Apache-2.0
//
// gRFC A62, "pick_first: sticky TRANSIENT_FAILURE and address order randomization", in the
// document's order. a61_dualstack_test has Happy Eyeballs.
//
// Not here:
//   - IDLE_TIMEOUT: a signalbox channel without calls does not go IDLE. It keeps its connection. It
//     tries a failed address again for ever.
//   - The service config's shuffleAddressList: signalbox has no service config.
//   - GRPC_EXPERIMENTAL_PICKFIRST_LB_CONFIG is not read: xDS may always configure pick_first.
//   - A113, which is on by default: endpoints of larger weight tend to come first in a shuffled
//     order (tests/unit/lb/address_order_test).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/leaf/address_order.hpp"
#include "lb/leaf/pick_first.hpp"
#include "tests/support/printed.hpp"
#include "tests/unit/lb/leaf_harness.hpp"
#include "tests/unit/lb/pick_first_story.hpp"
#include "tests/unit/xds/lb_policy_text.hpp"

namespace signalbox::a62_pick_first_test {
namespace {

using namespace lb;
using Strings = std::vector<std::string>;

constexpr auto kIdle = ConnectivityState::kIdle;
constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kReady = ConnectivityState::kReady;
constexpr auto kFailed = ConnectivityState::kTransientFailure;

const auto kAsks = std::make_shared<const DeafTarget>();

LeafHarness pick_first(bool shuffled = false, std::uint64_t seed = 1) {
  return LeafHarness(
      make_leaf(PickFirstConfig{shuffled}, PolicyContext{PolicyPath{"p"}, seed, kAsks}));
}

// A policy with these addresses. All of them were IDLE, and now the last one is READY.
LeafHarness ready_on(const Strings& addresses) {
  LeafHarness leaf = pick_first();
  leaf.update(addresses);
  for (const std::string& address : addresses)
    leaf.idle(address);
  leaf.ready(addresses.back());
  leaf.connects.clear();
  return leaf;
}

// A policy acquires addresses in the order in which it tries them.
Strings acquired(const LbEffects& effects) {
  Strings order;
  for (const LbEffect& effect : effects) {
    if (const auto* it = std::get_if<AcquireSubchannel>(&effect))
      order.push_back(it->address.str());
  }
  return order;
}

Strings texts(const std::vector<Address>& addresses) {
  Strings texts;
  for (const Address& address : addresses)
    texts.push_back(address.str());
  return texts;
}

// Six standard deviations of how often an outcome of probability `share` occurs in `runs` draws.
double margin(int runs, double share) {
  return 6 * std::sqrt(runs * share * (1 - share));
}

Strings order_of(std::uint64_t seed, bool shuffled, const Strings& endpoints) {
  return acquired(pick_first(shuffled, seed).update(endpoints));
}

}  // namespace

// --- "Background" ------------------------------------------------------------------------------

TEST_CASE("A62: pick_first connects without a call", "[spec][lb][pick_first][A62]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a", "b"});
  CHECK(leaf.held == std::set<std::string>{"a", "b"});
  CHECK(leaf.state() == kConnecting);
  CHECK(leaf.pick() == "queue");
  leaf.idle("a");
  CHECK(leaf.connects.empty());
  leaf.idle("b");
  CHECK(leaf.connects == Strings{"a"});
}

TEST_CASE("A62: addresses are tried in their order until one can be reached, which gets all calls",
          "[spec][lb][pick_first][A62]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a", "b", "c"});
  for (const char* address : {"a", "b", "c"})
    leaf.idle(address);
  leaf.connecting("a");
  CHECK(leaf.connects == Strings{"a"});
  leaf.fail("a");
  CHECK(leaf.connects == Strings{"a", "b"});
  leaf.idle("a");  // a's back-off is over, but its turn in this pass is over too.
  CHECK(leaf.connects == Strings{"a", "b"});
  leaf.connecting("b");
  leaf.ready("b");

  CHECK(leaf.state() == kReady);
  CHECK(leaf.pick() == "b");
  CHECK(leaf.held == std::set<std::string>{"b"});
  CHECK(leaf.published.size() == 2);
  CHECK(leaf.reresolutions == 0);
}

TEST_CASE("A62: a lost connection is made again when the application asks for it or makes a call",
          "[spec][lb][pick_first][A61][A62]") {
  const auto wake = GENERATE(values<LbEvent>({IdleExitRequested{}, PickAsked{}}));
  LeafHarness leaf = ready_on({"a", "b"});
  leaf.idle("b");
  CHECK(leaf.state() == kIdle);
  CHECK(leaf.held.empty());
  CHECK(leaf.reresolutions == 1);
  CHECK(leaf.connects.empty());

  const PickResult first = leaf.published.back().picker->pick({});
  CHECK(std::holds_alternative<Queue>(first.outcome));
  REQUIRE(first.ask.has_value());
  CHECK(first.ask->kind == PickAsk::Kind::kExitIdle);
  CHECK(first.ask_target == kAsks.get());
  CHECK_FALSE(leaf.published.back().picker->pick({}).ask.has_value());

  leaf.update({"a", "b", "c"});  // An update does not connect an IDLE policy.
  CHECK(leaf.state() == kIdle);
  CHECK(leaf.held.empty());

  leaf.step(wake);
  CHECK(leaf.state() == kConnecting);
  CHECK(leaf.held == std::set<std::string>{"a", "b", "c"});
  const LbEffects again = leaf.step(wake);
  CHECK(again.empty());
}

// --- "Use sticky-TF by default" ----------------------------------------------------------------

TEST_CASE(
    "A62: when all addresses have failed they are tried again without end, in TRANSIENT_FAILURE "
    "until READY",
    "[spec][lb][pick_first][A62]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a", "b"});
  leaf.idle("a");
  leaf.idle("b");
  leaf.fail("a");
  CHECK(leaf.state() == kConnecting);
  leaf.fail("b");
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.reresolutions == 1);
  CHECK(leaf.pick() == "fail: failed to connect to all 2 addresses; last error: b: refused by b");
  CHECK(leaf.published.back().status.code() == absl::StatusCode::kUnavailable);

  leaf.connects.clear();
  leaf.idle("b");  // After the pass each address connects when its back-off ends.
  leaf.connecting("b");
  leaf.idle("a");
  leaf.connecting("a");
  CHECK(leaf.connects == Strings{"b", "a"});
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.published.size() == 2);

  leaf.fail("b");
  CHECK(leaf.reresolutions == 1);
  leaf.fail("a");  // All addresses have failed again.
  CHECK(leaf.reresolutions == 2);
  CHECK(leaf.state() == kFailed);

  leaf.ready("a");
  CHECK(leaf.state() == kReady);
  CHECK(leaf.pick() == "a");
}

TEST_CASE("A62: a new list does not end TRANSIENT_FAILURE either", "[spec][lb][pick_first][A62]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a"});
  leaf.fail("a");
  REQUIRE(leaf.state() == kFailed);
  leaf.update({"b"});
  CHECK(leaf.held == std::set<std::string>{"b"});
  leaf.idle("b");
  leaf.connecting("b");
  CHECK(leaf.state() == kFailed);
  leaf.ready("b");
  CHECK(leaf.state() == kReady);
}

TEST_CASE("A62: the pass over a new list goes on in TRANSIENT_FAILURE",
          "[spec][lb][pick_first][A62]") {
  test::check({
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

TEST_CASE("A62: a list of addresses that have failed fails at once, and says why",
          "[spec][lb][pick_first][A62]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a", "b"});
  leaf.fail("a");
  leaf.idle("b");
  leaf.update({"a"});
  CHECK(leaf.pick() == "fail: a: refused by a");
}

// --- "Enable random shuffling of address list" -------------------------------------------------

TEST_CASE("A62: the order is shuffled where shuffleAddressList is set, and only there",
          "[spec][lb][pick_first][A62]") {
  const Strings endpoints{"a", "b", "c", "d", "e"};
  CHECK(order_of(7, false, endpoints) == endpoints);
  CHECK(order_of(7, true, endpoints) == order_of(7, true, endpoints));
  std::set<Strings> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    seen.insert(order_of(seed, true, endpoints));
  CHECK(seen.size() > 30);
}

TEST_CASE("A62: every order is equally likely", "[spec][lb][pick_first][A62][A113]") {
  const Shuffle shuffle = GENERATE(Shuffle::kEvenly, Shuffle::kByWeight);
  const auto slice = slice_of({"a", "b", "c"});
  std::map<Strings, int> seen;
  constexpr int kRuns = 6000;
  for (int seed = 0; seed < kRuns; ++seed)
    ++seen[texts(flatten(*slice, shuffle, static_cast<std::uint64_t>(seed)))];
  REQUIRE(seen.size() == 6);
  for (const auto& [order, count] : seen)
    CHECK(std::abs(count - kRuns / 6.0) < margin(kRuns, 1 / 6.0));
}

TEST_CASE("A62: each list is shuffled when it comes", "[spec][lb][pick_first][A62]") {
  int shuffled = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    LeafHarness leaf = pick_first(true, seed);
    leaf.update({"a", "b"});
    if (acquired(leaf.update({"c", "d", "e", "f"})) != Strings{"c", "d", "e", "f"}) ++shuffled;
  }
  CHECK(shuffled > 40);
}

TEST_CASE("A62: a later configuration may switch shuffling on", "[spec][lb][pick_first][A62]") {
  std::set<Strings> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    LeafHarness leaf = pick_first(false, seed);
    CHECK(acquired(leaf.update({"a", "b"})) == Strings{"a", "b"});
    seen.insert(acquired(leaf.update({"c", "d"}, make_lb_config(PickFirstConfig{true}))));
  }
  CHECK(seen == std::set<Strings>{{"c", "d"}, {"d", "c"}});
}

// --- "pick_first via xDS" ----------------------------------------------------------------------

TEST_CASE("A62: the PickFirst message of xDS chooses pick_first for localities and endpoints",
          "[spec][xds][pick_first][A62]") {
  struct Row {
    const char* fields;
    bool shuffles;
  };

  const auto row = GENERATE(values<Row>(
      {{"", false}, {"shuffle_address_list: false", false}, {"shuffle_address_list: true", true}}));
  const auto config =
      xds::config_of<PickFirstConfig>(xds::list(xds::entry("pick_first.v3.PickFirst", row.fields)));
  CHECK(config.shuffle_address_list == row.shuffles);
}

}  // namespace signalbox::a62_pick_first_test
