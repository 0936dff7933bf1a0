// SPDX-License-Identifier: Apache-2.0
//
// gRFC A61, "IPv4 and IPv6 Dualstack Backend Support", in the document's order.
//
// Elsewhere: outlier detection (a50_outlier_detection_test), stateful session affinity
// (a55_cookie_test, a55_override_host_test), the aggregated state and the picks of ring_hash
// (a42_ring_hash_test), sticky TRANSIENT_FAILURE and shuffling (a62_pick_first_test), judges of
// health (unit tests of subchannel_map).
//
// Not here:
//   - weighted_round_robin: a58_weighted_round_robin_test.
//   - In the document a new list starts a pass from its beginning. Here an attempt at an address
//     that stays goes on, and so does its delay. Frequent new lists therefore do not delay attempts
//     (decision 35).
//   - In the document an endpoint that gains or loses an address is a new endpoint. Here it is the
//     same endpoint, and keeps its connection.
//   - GRPC_EXPERIMENTAL_XDS_DUALSTACK_ENDPOINTS is true unless it is "false".

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/leaf/address_order.hpp"
#include "lb/leaf/pick_first.hpp"
#include "lb/leaf/round_robin.hpp"
#include "lb/policy_registry.hpp"
#include "lb/xx_hash.hpp"
#include "signalbox/envoy/config/endpoint/v3/endpoint.pb.h"
#include "tests/support/dependency_world.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/lb/least_request_harness.hpp"
#include "tests/unit/lb/pick_first_story.hpp"
#include "tests/unit/lb/ring_hash_harness.hpp"
#include "tests/unit/xds/lb_policy_text.hpp"
#include "xds/parse/endpoints.hpp"

namespace signalbox::a61_dualstack_test {
namespace {

using namespace lb;
using namespace std::chrono_literals;
using test::check;
using test::Story;
using Strings = std::vector<std::string>;
using WhenLost = PickFirst::WhenLost;
using Health = PickFirst::Health;

constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kReady = ConnectivityState::kReady;
constexpr auto kFailed = ConnectivityState::kTransientFailure;

const auto kAsks = std::make_shared<const DeafTarget>();

LeafHarness pick_first() {
  return LeafHarness(make_leaf(PickFirstConfig{}, PolicyContext{PolicyPath{"p"}, 1, kAsks}));
}

LeafHarness round_robin() {
  return LeafHarness(make_leaf(RoundRobinConfig{}, PolicyContext{PolicyPath{"p"}, 1, nullptr}));
}

LeafHarness ready_on(const Strings& endpoints) {
  LeafHarness leaf = round_robin();
  leaf.update(endpoints);
  for (const std::string& endpoint : endpoints)
    leaf.ready(endpoint);
  leaf.step(RebuildDue{});
  return leaf;
}

std::map<std::string, int> shares(const LeafHarness& leaf, int picks) {
  std::map<std::string, int> shares;
  for (int i = 0; i < picks; ++i)
    ++shares[leaf.pick()];
  return shares;
}

// A petiole policy: each of its endpoints has a pick_first.
struct Petiole {
  const char* name;
  LbConfigPtr config;

  // The policy with these endpoints, after picks have asked it to connect all of them.
  LeafHarness of(const Strings& endpoints) const {
    PolicyContext context{PolicyPath{"p"}, 1, kAsks};
    LeafHarness leaf(make_policy(*config, context));
    leaf.update(endpoints, config);
    for (const std::string& endpoint : endpoints) {
      const Address first(endpoint.substr(0, endpoint.find(',')));
      leaf.step(PickAsked{{PickAsk::Kind::kConnect, first}});
    }
    return leaf;
  }
};

std::vector<Petiole> petioles() {
  return {{"round_robin", make_lb_config(RoundRobinConfig{})},
          {"least_request", make_lb_config(LeastRequestConfig{})},
          {"ring_hash", make_lb_config(RingHashConfig{})}};
}

std::vector<Address> addresses(const Strings& texts) {
  return {texts.begin(), texts.end()};
}

Strings texts(const std::vector<Address>& addresses) {
  Strings texts;
  for (const Address& address : addresses)
    texts.push_back(address.str());
  return texts;
}

std::string socket_address(const std::string& ip, int port) {
  return absl::StrCat(
      "address { socket_address { address: \"", ip, "\" port_value: ", port, " } } ");
}

// An EDS resource with one endpoint at 1.1.1.1:80 and these additional addresses.
ReceivedResource eds_with(const std::string& additional, const xds::ParseOptions& options = {}) {
  return xds::parse_endpoints(
      xds::serialise<envoy::config::endpoint::v3::ClusterLoadAssignment>(
          "cluster_name: \"orders\" endpoints { locality { zone: \"z\" } load_balancing_weight { "
          "value: 1 } lb_endpoints { endpoint { " +
          socket_address("1.1.1.1", 80) + additional + " } } }"),
      options);
}

std::vector<Address> addresses_in(const ReceivedResource& received) {
  return xds::value_of<Endpoints>(received)
      .priorities.at(0)
      .localities.at(0)
      ->endpoints.at(0)
      .addresses;
}

}  // namespace

// --- "Happy Eyeballs in the pick_first LB Policy" ----------------------------------------------

TEST_CASE(
    "A61: the Connection Attempt Delay is 250 ms, and from 100 ms to 2 s where the application "
    "says so",
    "[spec][lb][pick_first][A61]") {
  struct Row {
    Duration asked;
    std::string told;
  };

  const auto row = GENERATE(values<Row>(
      {{kAttemptDelay, "0.25s"}, {0ms, "0.1s"}, {99ms, "0.1s"}, {300ms, "0.3s"}, {2001ms, "2s"}}));
  Story story{PickFirst(WhenLost::kGoIdle, row.asked)};
  check(story,
        {"update a b -> acquire a, acquire b",
         "idle a -> ",
         "idle b -> connect a, timer attempt/a " + row.told});
}

TEST_CASE("A61: the policy uses the delay of the application", "[spec][lb][pick_first][A61]") {
  PolicyContext context{PolicyPath{"p"}, 1, kAsks};
  context.options.connection_attempt_delay = std::chrono::milliseconds(400);
  LeafHarness leaf(make_leaf(PickFirstConfig{}, context));
  leaf.update({"a", "b"});
  leaf.idle("a");
  leaf.idle("b");
  leaf.connecting("a");
  REQUIRE(leaf.timers.size() == 1);
  CHECK(leaf.timers.back().delay == std::chrono::milliseconds(400));
  leaf.step(TimerFired{leaf.timers.back().timer});
  CHECK(leaf.connects == Strings{"a", "b"});
  leaf.ready("a");
  CHECK(leaf.pick() == "a");
  CHECK(leaf.held == std::set<std::string>{"a"});
}

TEST_CASE("A61: an attempt that outlasts the delay goes on, and the next address joins it",
          "[spec][lb][pick_first][A61]") {
  check({
      "update a b c -> acquire a, acquire b, acquire c",
      "idle a -> ",
      "idle b -> ",
      "idle c -> connect a, timer attempt/a 0.25s",
      "connecting a -> ",
      "time -> connect b, timer attempt/b 0.25s",
      "connecting b -> ",
      "time -> connect c",  // "c" is the last address, so no timer starts.
      "connecting c -> ",
      "ready a -> release b, release c, READY",
  });
}

TEST_CASE("A61: an attempt that fails has the next one begin at once",
          "[spec][lb][pick_first][A61]") {
  check({
      "update a b c -> acquire a, acquire b, acquire c",
      "idle a -> ",
      "idle b -> ",
      "idle c -> connect a, timer attempt/a 0.25s",
      "connecting a -> ",
      "failed a -> connect b, timer attempt/b 0.25s",
      "late -> ",    // The timer of a's attempt fires late, and changes nothing.
      "idle a -> ",  // a's back-off is over, but its turn in this pass is over too.
      "connecting b -> ",
      "ready b -> release a, release c, READY",
      "time -> ",
  });
}

TEST_CASE("A61: an earlier attempt that fails leaves the newest one its delay",
          "[spec][lb][pick_first][A61]") {
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

TEST_CASE("A61: the first address that is READY is chosen, and the others are released",
          "[spec][lb][pick_first][A61]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a", "b"});
  leaf.idle("a");
  leaf.ready("b");  // Another holder of the subchannel has connected it.
  CHECK(leaf.connects.empty());
  CHECK(leaf.pick() == "b");
  CHECK(leaf.held == std::set<std::string>{"b"});
}

TEST_CASE("A61: after a failed pass each address is tried as soon as its back-off is over",
          "[spec][lb][pick_first][A61][A62]") {
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

TEST_CASE(
    "A61: re-resolution is asked for when as many attempts have failed as there are addresses",
    "[spec][lb][pick_first][A62]") {
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

TEST_CASE("A61: an address that is CONNECTING already is waited for as for an own attempt",
          "[spec][lb][pick_first][A61]") {
  check({
      "update a b -> acquire a, acquire b",
      "connecting a -> ",
      "idle b -> timer attempt/a 0.25s",
      "time -> connect b",
  });
}

TEST_CASE("A61: an address in back-off counts as tried", "[spec][lb][pick_first][A61]") {
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

TEST_CASE("A61: an address that failed before its turn is tried when its back-off is over by then",
          "[spec][lb][pick_first][A61]") {
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

TEST_CASE("A61: a new list keeps a connection to an address of the list",
          "[spec][lb][pick_first][A61]") {
  check({
      "update a -> acquire a",
      "ready a -> READY",
      "update b a -> ",
      "update b -> acquire b, release a, CONNECTING",
  });
}

TEST_CASE("A61: when the address that is waited for leaves the list, the next one has its turn",
          "[spec][lb][pick_first][A61]") {
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

TEST_CASE("A61: lists that come quickly hold no address up", "[spec][lb][pick_first][A61]") {
  check({
      "update a b c -> acquire a, acquire b, acquire c",
      "idle a -> ",
      "idle b -> ",
      "idle c -> connect a, timer attempt/a 0.25s",
      "connecting a -> ",
      "update a b d -> acquire d, release c",  // a's connection attempt delay continues.
      "idle d -> ",
      "time -> connect b, timer attempt/b 0.25s",
      "connecting b -> ",
      "update a b c -> acquire c, release d",
      "idle c -> ",
      "time -> connect c",
      "connecting c -> ",
      "update d a b -> acquire d, release c",
      "idle d -> connect d, timer attempt/d 0.25s",
      "failed d -> ",  // a and b are already connecting.
      "failed b -> ",
      "failed a -> re-resolve, TRANSIENT_FAILURE",
  });
}

TEST_CASE("A61: after a lost connection the next pass begins with the first address",
          "[spec][lb][pick_first][A61]") {
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

// --- "Use pick_first as the Universal Leaf Policy" ---------------------------------------------

TEST_CASE("A61: every petiole policy tries an endpoint's addresses by Happy Eyeballs",
          "[spec][lb][round_robin][least_request][ring_hash][A61]") {
  for (const Petiole& petiole : petioles()) {
    INFO(petiole.name);
    LeafHarness leaf = petiole.of({"a1,a2"});
    leaf.idle("a1");
    leaf.idle("a2");
    CHECK(leaf.connects == Strings{"a1"});
    leaf.connecting("a1");
    REQUIRE(leaf.timers.size() == 1);
    CHECK(leaf.timers[0].delay == kAttemptDelay);
    leaf.step(TimerFired{leaf.timers[0].timer});
    CHECK(leaf.connects == Strings{"a1", "a2"});
    leaf.ready("a2");
    CHECK(leaf.held == std::set<std::string>{"a2"});
    leaf.step(RebuildDue{});
    CHECK(leaf.state() == kReady);
    CHECK(leaf.pick() == "a2");
  }
}

TEST_CASE("A61: each endpoint has attempts and a delay of its own",
          "[spec][lb][round_robin][A61]") {
  PolicyContext context{PolicyPath{"p"}, 1, nullptr};
  context.options.connection_attempt_delay = std::chrono::milliseconds(300);
  LeafHarness leaf(make_leaf(RoundRobinConfig{}, context));
  leaf.update({"a1,a2", "b1,b2", "c"});
  for (const char* address : {"a1", "a2", "b1", "b2", "c"})
    leaf.idle(address);
  CHECK(leaf.connects == Strings{"a1", "b1", "c"});
  REQUIRE(leaf.timers.size() == 2);
  CHECK(leaf.timers[1].delay == std::chrono::milliseconds(300));
  leaf.step(TimerFired{leaf.timers[1].timer});
  CHECK(leaf.connects == Strings{"a1", "b1", "c", "b2"});
  leaf.ready("b2");
  CHECK(leaf.held == std::set<std::string>{"a1", "a2", "b2", "c"});

  // Two timers must have no effect: one that fires a second time, and one of an endpoint that the
  // policy no longer has.
  leaf.step(TimerFired{leaf.timers[1].timer});
  leaf.update({"c"});
  leaf.step(TimerFired{leaf.timers[0].timer});
  CHECK(leaf.connects == Strings{"a1", "b1", "c", "b2"});
}

TEST_CASE("A61: a petiole policy that fails says the error of one of its endpoints",
          "[spec][lb][round_robin][least_request][ring_hash][A61]") {
  for (const Petiole& petiole : petioles()) {
    INFO(petiole.name);
    LeafHarness leaf = petiole.of({"a", "b"});
    for (const char* address : {"a", "b"}) {
      leaf.idle(address);
      leaf.fail(address);
    }
    leaf.step(RebuildDue{});
    CHECK(leaf.state() == kFailed);
    CHECK(leaf.pick() ==
          absl::StrCat(
              "fail: ", petiole.name, ": all 2 endpoints failed; last error: b: refused by b"));
  }
}

// --- "Address List Handling in pick_first" -----------------------------------------------------

TEST_CASE("A61: step 1, shuffling moves whole endpoints and leaves the order of their addresses",
          "[spec][lb][pick_first][A61][A62][A113]") {
  CHECK(test::holds("a permutation of the endpoints", 1'000, [](std::uint64_t seed) {
    Strings endpoints;
    const int count = *rc::gen::inRange(0, 40);
    endpoints.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      endpoints.push_back(absl::StrCat(i, "a,", i, "b"));
    const auto slice = slice_of(endpoints);
    const auto configured = flatten(*slice, Shuffle::kNone, seed);
    RC_ASSERT(texts(configured).size() == 2 * endpoints.size());
    for (const Shuffle shuffle : {Shuffle::kEvenly, Shuffle::kByWeight}) {
      const auto order = flatten(*slice, shuffle, seed);
      RC_ASSERT(order == flatten(*slice, shuffle, seed));
      RC_ASSERT(std::ranges::is_permutation(order, configured));
      for (std::size_t at = 0; at < order.size(); at += 2) {
        const std::string& first = order[at].str();
        RC_ASSERT(order[at + 1].str() == first.substr(0, first.size() - 1) + "b");
      }
    }
  }));
}

TEST_CASE("A61: step 2, the addresses of all endpoints are concatenated in order",
          "[spec][lb][pick_first][A61]") {
  CHECK(texts(flatten(*slice_of({"a1,a2", "b1", "c1,c2"}), Shuffle::kNone, 1)) ==
        Strings{"a1", "a2", "b1", "c1", "c2"});
}

TEST_CASE("A61: step 3, the two address families take turns, the family of the first address first",
          "[spec][lb][pick_first][A61]") {
  struct Row {
    Strings from;
    Strings to;
  };

  const auto row = GENERATE(values<Row>({
      {{}, {}},
      {{"1.1.1.1:1"}, {"1.1.1.1:1"}},
      {{"a", "b", "c"}, {"a", "b", "c"}},
      {{"[::1]:1", "[::2]:1"}, {"[::1]:1", "[::2]:1"}},
      {{"a", "b", "[c]", "[d]"}, {"a", "[c]", "b", "[d]"}},
      {{"[c]", "[d]", "a", "b"}, {"[c]", "a", "[d]", "b"}},
      {{"a", "b", "c", "[d]"}, {"a", "[d]", "b", "c"}},
      {{"[a]", "b", "c", "d"}, {"[a]", "b", "c", "d"}},
      {{"a", "[b]", "c", "[d]"}, {"a", "[b]", "c", "[d]"}},
      {{"a", "a", "[b]", "a", "[b]", "c"}, {"a", "[b]", "c"}},
  }));
  INFO(::Catch::Detail::stringify(row.from));
  CHECK(texts(interleave_families(addresses(row.from))) == row.to);
}

TEST_CASE("A61: interleaving drops no address and keeps the order within a family",
          "[spec][lb][pick_first][A61]") {
  CHECK(test::holds(
      "a permutation of the distinct addresses", 1'000, [](const std::vector<bool>& v6) {
        std::vector<Address> from;
        for (std::size_t at = 0; at < v6.size(); ++at)
          from.emplace_back(absl::StrCat(v6[at] ? "[" : "", at % 7));
        const auto family = [&](std::vector<Address> all, bool ipv6) {
          std::erase_if(all, [&](const Address& it) { return (it.str().front() == '[') != ipv6; });
          return all;
        };
        std::vector<Address> distinct;
        for (const Address& address : from) {
          if (std::ranges::find(distinct, address) == distinct.end()) distinct.push_back(address);
        }
        const auto to = interleave_families(from);
        RC_ASSERT(to.size() == distinct.size());
        RC_ASSERT(family(to, true) == family(distinct, true));
        RC_ASSERT(family(to, false) == family(distinct, false));
        // Equal families are adjacent only after the last address of the other family.
        for (std::size_t at = 2; at < to.size(); ++at) {
          const bool same = (to[at].str().front() == '[') == (to[at - 1].str().front() == '[');
          const bool before =
              (to[at - 1].str().front() == '[') == (to[at - 2].str().front() == '[');
          RC_ASSERT(same || !before);
        }
      }));
}

TEST_CASE("A61: families are interleaved in the flattened list, not in each endpoint",
          "[spec][lb][pick_first][A61]") {
  LeafHarness leaf = pick_first();
  Strings order;
  for (const LbEffect& effect : leaf.update({"a,[a]", "[b],b"})) {
    if (const auto* it = std::get_if<AcquireSubchannel>(&effect))
      order.push_back(it->address.str());
  }
  CHECK(order == Strings{"a", "[a]", "b", "[b]"});
}

TEST_CASE("A61: attempts follow the interleaved order", "[spec][lb][pick_first][A61]") {
  check({
      "update [a] [b] c -> acquire [a], acquire c, acquire [b]",
      "idle [a] -> ",
      "idle [b] -> ",
      "idle c -> connect [a], timer attempt/[a] 0.25s",
      "time -> connect c, timer attempt/c 0.25s",
  });
}

// --- "Generic Health Reporting Mechanism" ------------------------------------------------------

TEST_CASE(
    "A61: below a petiole policy bad health is reported as the state, and the connection is kept",
    "[spec][lb][pick_first][A61]") {
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

TEST_CASE("A61: an unhealthy endpoint of a petiole policy gets no calls and keeps its connection",
          "[spec][lb][round_robin][least_request][ring_hash][A61]") {
  for (const Petiole& petiole : petioles()) {
    INFO(petiole.name);
    LeafHarness leaf = petiole.of({"a", "b"});
    leaf.ready("a");
    leaf.ready("b");
    leaf.unhealthy("a");
    leaf.step(RebuildDue{});
    CHECK(leaf.state() == kReady);
    for (int pick = 0; pick < 4; ++pick)
      CHECK(leaf.pick() == "b");
    leaf.unhealthy("b");
    CHECK(leaf.state() == kFailed);
    CHECK(leaf.held == std::set<std::string>{"a", "b"});
    leaf.ready("a");
    leaf.step(RebuildDue{});
    CHECK(leaf.state() == kReady);
    CHECK(leaf.pick() == "a");
    CHECK(leaf.reresolutions == 0);
  }
}

TEST_CASE("A61: health does not count for pick_first by itself", "[spec][lb][pick_first][A61]") {
  Story story{PickFirst(WhenLost::kGoIdle, 250ms, Health::kIgnored)};
  check(story, {"update a -> acquire a", "unhealthy a -> READY", "ready a -> "});
  check(story, {"unhealthy a -> "});
  CHECK(story.first().status().ok());
  CHECK(story.first().connection() != nullptr);
}

TEST_CASE("A61: the pick_first policy ignores outlier detection and health checks",
          "[spec][lb][pick_first][A17][A50][A61]") {
  LeafHarness leaf = pick_first();
  leaf.update({"a"});
  leaf.idle("a");
  leaf.ready("a");
  const std::size_t published = leaf.published.size();
  leaf.unhealthy("a");
  CHECK(leaf.state() == kReady);
  CHECK(leaf.pick() == "a");
  leaf.ready("a");
  CHECK(leaf.pick() == "a");
  CHECK(leaf.reresolutions == 0);
  // unhealthy() and the second ready() each report a new connection, and the policy publishes each.
  CHECK(leaf.published.size() == published + 2);
}

// --- "Address List Updates in Petiole Policies" ------------------------------------------------

TEST_CASE("A61: a new list keeps the endpoints that stay, and their connections",
          "[spec][lb][round_robin][A61]") {
  LeafHarness leaf = ready_on({"a", "b"});
  const LbEffects effects = leaf.update({"b", "c"});
  CHECK(count_of<AcquireSubchannel>(effects) == 1);
  CHECK(count_of<ReleaseSubchannel>(effects) == 1);
  CHECK(leaf.held == std::set<std::string>{"b", "c"});
  CHECK(leaf.state() == kReady);
  leaf.step(RebuildDue{});
  CHECK(shares(leaf, 2) == std::map<std::string, int>{{"b", 2}});
  leaf.idle("c");

  CHECK(leaf.update({"c", "b"}).size() == 1);  // A new order: only Applied.
  leaf.update({"c"});
  CHECK(leaf.state() == kConnecting);
}

TEST_CASE("A61: an endpoint is its set of addresses, in any order",
          "[spec][lb][round_robin][A61]") {
  LeafHarness leaf = round_robin();
  leaf.update({"a,b", "c", "a,b"});
  CHECK(leaf.held == std::set<std::string>{"a", "b", "c"});
  leaf.idle("a");
  leaf.idle("b");
  leaf.ready("b");
  leaf.ready("c");
  leaf.step(RebuildDue{});
  CHECK(leaf.held == std::set<std::string>{"b", "c"});
  CHECK(shares(leaf, 4) == std::map<std::string, int>{{"b", 2}, {"c", 2}});

  const LbEffects effects = leaf.update({"b,a", "c"});
  CHECK(count_of<AcquireSubchannel>(effects) == 0);
  CHECK(leaf.pick() != "queue");
}

TEST_CASE("A61: an endpoint that gains an address keeps its connection",
          "[spec][lb][round_robin][A61]") {
  LeafHarness leaf = ready_on({"a"});
  const std::size_t published = leaf.published.size();
  const LbEffects effects = leaf.update({"a,b"});
  CHECK(count_of<ReleaseSubchannel>(effects) == 1);  // b is no longer needed.
  CHECK(leaf.held == std::set<std::string>{"a"});
  leaf.step(RebuildDue{});
  for (std::size_t at = published; at < leaf.published.size(); ++at)
    CHECK(leaf.published[at].state == kReady);
  CHECK(leaf.pick() == "a");
}

// --- "Least Request" ---------------------------------------------------------------------------

TEST_CASE("A61: least_request counts calls for each endpoint, whatever the order of its addresses",
          "[spec][lb][least_request][A61][A48]") {
  LeastRequestHarness leaf({"a", "b"});
  leaf.update({"a,x", "b"}, of_choices(2));
  leaf.step(RebuildDue{});
  const std::uint64_t seed = seed_that_draws("ab");
  REQUIRE(leaf.begin(seed) == "a");
  leaf.update({"x,a", "b"}, of_choices(2));
  leaf.step(RebuildDue{});
  CHECK(leaf.where(seed) == "b");
}

// --- "Ring Hash" -------------------------------------------------------------------------------

TEST_CASE("A61: an endpoint stands on the ring by its first address, and is reached by any",
          "[spec][lb][ring_hash][A61]") {
  RingHashHarness leaf({"a,x", "b,y"});
  const std::uint64_t hash = xx_hash("a_0");
  CHECK(leaf.answer(hash) == "queue, connect a");
  leaf.want("a");
  CHECK(leaf.held == std::set<std::string>{"a", "x"});
  leaf.idle("a");
  leaf.idle("x");
  leaf.fail("a");
  leaf.ready("x");
  CHECK(leaf.answer(hash) == "complete x");
}

TEST_CASE("A61: another first address is another place on the ring", "[spec][lb][ring_hash][A61]") {
  RingHashHarness leaf(Strings{"a,x", "b"});
  CHECK(leaf.answer(xx_hash("a_0")) == "queue, connect a");
  leaf.list(Strings{"x,a", "b"});
  leaf.settle();
  CHECK(leaf.answer(xx_hash("x_0")) == "queue, connect x");
}

TEST_CASE("A61: ring_hash passes over an unhealthy endpoint as over one that failed",
          "[spec][lb][ring_hash][A61]") {
  RingHashHarness leaf(kAbc);
  leaf.bring({{"a", 'r'}, {"b", 'r'}});
  leaf.unhealthy("a");
  leaf.settle();
  CHECK(leaf.answer(kHash) == "complete b");
  CHECK(leaf.held.contains("a"));
  leaf.ready("a");
  leaf.settle();
  CHECK(leaf.answer(kHash) == "complete a");
}

// --- "Support Multiple Addresses Per Endpoint in xDS" ------------------------------------------

TEST_CASE("A61: an endpoint of EDS has its address and its additional_addresses",
          "[spec][xds][parse][A61]") {
  const auto more = [](const std::string& ip, int port) {
    return "additional_addresses { " + socket_address(ip, port) + "} ";
  };
  CHECK(texts(addresses_in(eds_with(""))) == Strings{"1.1.1.1:80"});
  CHECK(texts(addresses_in(eds_with(more("::1", 81) + more("1.1.1.1", 82)))) ==
        Strings{"1.1.1.1:80", "[::1]:81", "1.1.1.1:82"});
}

TEST_CASE("A61: an additional address that is unset or no address rejects the resource",
          "[spec][xds][parse][A61]") {
  const std::string place =
      "EDS resource \"orders\": endpoints[0].lb_endpoints[0].endpoint.additional_addresses[0]."
      "address.socket_address";
  CHECK(xds::error_of(eds_with("additional_addresses {}")) == place + ": must be set, found none");
  CHECK(xds::error_of(eds_with("additional_addresses { " + socket_address("name", 80) + "}")) ==
        place + ".address: must be an IPv4 or IPv6 literal, found \"name\"");
}

// --- "Changes to Logical DNS Clusters" ---------------------------------------------------------

TEST_CASE("A61: a LOGICAL_DNS cluster keeps its LB policy", "[spec][xds][parse][A61][A75-6]") {
  const auto received = xds::parse_cluster(xds::serialise<envoy::config::cluster::v3::Cluster>(
      R"(name: "orders" type: LOGICAL_DNS load_assignment { endpoints { lb_endpoints { endpoint {
           address { socket_address { address: "h" port_value: 1 } } } } } } )" +
      xds::list(xds::kRoundRobin)));
  CHECK(
      same_config(xds::value_of<Cluster>(received).lb_policy, make_lb_config(RoundRobinConfig{})));
}

TEST_CASE("A61: all addresses of a LOGICAL_DNS name are one endpoint",
          "[spec][xds][depend][A37-20][A61]") {
  tests::DependencyWorld world;
  world.route_to({"d"});
  world.set(tests::cds("d"), tests::dns_cluster("d", "h:1"));
  world.resolve("h:1", {"10.0.0.1:1", "10.0.0.2:1"});
  const Endpoints& found = *world.leaf("d").endpoints;
  REQUIRE(found.priorities.size() == 1);
  REQUIRE(found.priorities[0].localities.size() == 1);
  const Locality& locality = *found.priorities[0].localities[0];
  CHECK(locality.name == LocalityName{});
  REQUIRE(locality.endpoints.size() == 1);
  CHECK(locality.endpoints[0].addresses ==
        std::vector<Address>{Address{"10.0.0.1:1"}, Address{"10.0.0.2:1"}});
  CHECK(world.resolve("h:1", {"10.0.0.1:1", "10.0.0.2:1"}).empty());
}

// --- "Temporary environment variable protection" -----------------------------------------------

TEST_CASE("A61: GRPC_EXPERIMENTAL_XDS_DUALSTACK_ENDPOINTS=false leaves additional_addresses unread",
          "[spec][xds][parse][A61]") {
  const auto in = [](const char* value) {
    return xds::parse_options_from(
        [&](const std::string& name) {
          return name == "GRPC_EXPERIMENTAL_XDS_DUALSTACK_ENDPOINTS" ? value : nullptr;
        },
        /*trusted_server=*/false);
  };
  const std::string more = "additional_addresses { " + socket_address("::1", 81) + "}";
  CHECK(addresses_in(eds_with(more, in(nullptr))).size() == 2);
  CHECK(addresses_in(eds_with(more, in("true"))).size() == 2);
  CHECK(addresses_in(eds_with(more, in("false"))).size() == 1);
  CHECK(xds::error_of(eds_with("additional_addresses {}", in("false"))).empty());
}

}  // namespace signalbox::a61_dualstack_test
