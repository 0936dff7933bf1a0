// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/ring_hash.hpp"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/leaf/hash_ring.hpp"
#include "lb/xx_hash.hpp"
#include "tests/support/property.hpp"
#include "tests/support/route_fixture.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {
namespace {

using Strings = std::vector<std::string>;
using testing::TestHeaders;
constexpr auto kIdle = ConnectivityState::kIdle;
constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kReady = ConnectivityState::kReady;
constexpr auto kFailed = ConnectivityState::kTransientFailure;

/// The names of equal weight as the ring has them from `hash` on, each once.
Strings order_from(const Strings& names, std::uint64_t hash, HashRing::Sizes sizes = {}) {
  std::vector<HashRing::Item> items;
  for (const std::string& name : names)
    items.push_back({name, 1});
  const HashRing ring(items, sizes);
  Strings order;
  for (std::size_t step = 0; step < ring.size(); ++step) {
    const std::string& name = names[ring.item((ring.find(hash) + step) % ring.size())];
    if (std::ranges::count(order, name) == 0) order.push_back(name);
  }
  return order;
}

/// A hash from which the ring has these names in this order.
std::uint64_t hash_for(const Strings& order, const Strings& names) {
  std::uint64_t number = 0;
  while (order_from(names, draw(number, Salt::kDrop)) != order)
    ++number;
  return draw(number, Salt::kDrop);
}

class Harness : public LeafHarness {
 public:
  explicit Harness(PolicyOptions options = {}, std::shared_ptr<const AskTarget> asks = kDeaf)
      : LeafHarness(
            make_leaf({}, PolicyContext{PolicyPath{"p"}, 1, std::move(asks), options, nullptr})) {}

  Harness(const Strings& endpoints, RingHashConfig own = {}) : Harness() {
    config = std::move(own);
    list(endpoints);
  }

  LbEffects list(const Strings& endpoints) { return update(endpoints, make_lb_config(config)); }

  LbEffects list(Endpoints slice) {
    ConfigUpdated update;
    update.generation = ++generation;
    update.config = make_lb_config(config);
    update.endpoints = std::make_shared<const Endpoints>(std::move(slice));
    return step(update);
  }

  void settle() { step(RebuildDue{}); }

  /// Delivers a pick's ask for this endpoint.
  LbEffects want(const std::string& first) {
    return step(PickAsked{{PickAsk::Kind::kConnect, Address{first}}});
  }

  /// Brings endpoints into the states: r, c, f; the others stay as they are.
  void bring(const std::map<std::string, char>& states) {
    for (const auto& [address, state] : states) {
      want(address);
      idle(address);
      connecting(address);
    }
    for (const char now : {'r', 'f'}) {
      for (const auto& [address, state] : states) {
        if (state != now) continue;
        now == 'r' ? ready(address) : fail(address);
      }
    }
    settle();
  }

  PickResult ask(const PickArgs& args) const { return published.back().picker->pick(args); }

  /// "complete a", "queue", "queue, connect a", "fail: …".
  std::string answer(const PickArgs& args) const {
    const PickResult result = ask(args);
    std::string text = std::visit(
        Overloaded{
            [](const Complete& it) { return "complete " + it.connection->address().str(); },
            [](const Queue&) { return std::string("queue"); },
            [](const Fail& it) { return "fail: " + std::string(it.status.message()); },
            [](const Drop&) { return std::string("drop"); },
        },
        result.outcome);
    if (result.ask.has_value()) {
      CHECK(result.ask->kind == PickAsk::Kind::kConnect);
      CHECK(result.ask_target != nullptr);
      absl::StrAppend(&text, ", connect ", result.ask->address.str());
    }
    return text;
  }

  std::string answer(std::uint64_t hash) const { return answer({.hash = hash}); }

  RingHashConfig config;

 private:
  static inline const std::shared_ptr<const AskTarget> kDeaf = std::make_shared<DeafTarget>();
};

RingHashConfig by_header(std::string name) {
  RingHashConfig config;
  config.request_hash_header = std::move(name);
  return config;
}

const Strings kAbc{"a", "b", "c"};
const std::uint64_t kHash = hash_for(kAbc, kAbc);

// --- connecting ------------------------------------------------------------

TEST_CASE("ring_hash: is IDLE and connects nothing until a pick wants it",
          "[lb][ring_hash][A42][A61]") {
  Harness leaf(kAbc);
  CHECK(leaf.state() == kIdle);
  CHECK(leaf.held.empty());
  CHECK(leaf.applied == 1);
  CHECK(leaf.answer(kHash) == "queue, connect a");
  CHECK(leaf.answer(kHash) == "queue");  // Told once.

  leaf.want("a");
  CHECK(leaf.held == std::set<std::string>{"a"});
  CHECK(leaf.state() == kConnecting);
  CHECK(leaf.answer(kHash) == "queue");
  leaf.idle("a");
  CHECK(leaf.connects == Strings{"a"});
  leaf.ready("a");
  CHECK(leaf.state() == kReady);
  CHECK(leaf.answer(kHash) == "complete a");
  CHECK(leaf.held == std::set<std::string>{"a"});
}

TEST_CASE("ring_hash: an ask of what is not there is dropped, a second one changes nothing",
          "[lb][ring_hash]") {
  Harness leaf(kAbc);
  CHECK(leaf.want("x").empty());
  leaf.want("a");
  CHECK(leaf.want("a").empty());
}

TEST_CASE("ring_hash: who lost its connection is IDLE until it is wanted again",
          "[lb][ring_hash][A42][A61]") {
  Harness leaf(kAbc);
  leaf.bring({{"a", 'r'}});
  leaf.connects.clear();
  leaf.idle("a");
  CHECK(leaf.state() == kIdle);
  CHECK(leaf.held.empty());
  CHECK(leaf.connects.empty());
  CHECK(leaf.answer(kHash) == "queue, connect a");
  leaf.want("a");
  CHECK(leaf.held == std::set<std::string>{"a"});
}

TEST_CASE("ring_hash: who failed has failed until it is READY", "[lb][ring_hash][A42][A62]") {
  Harness leaf({"a"});
  leaf.bring({{"a", 'f'}});
  CHECK(leaf.state() == kFailed);
  leaf.connects.clear();
  leaf.idle("a");  // The back-off is over.
  CHECK(leaf.connects == Strings{"a"});
  leaf.connecting("a");
  leaf.settle();
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.answer(kHash).rfind("fail: ", 0) == 0);
  leaf.ready("a");
  CHECK(leaf.state() == kReady);
}

TEST_CASE("ring_hash: whoever wants it out of IDLE has one endpoint connected", "[lb][ring_hash]") {
  Harness leaf(kAbc);
  leaf.step(IdleExitRequested{});
  CHECK(leaf.held.size() == 1);
  CHECK(leaf.state() == kConnecting);
  leaf.step(IdleExitRequested{});
  CHECK(leaf.held.size() == 1);
}

// --- state -----------------------------------------------------------------

// I1, with the endpoint that is connected unasked.
TEST_CASE("ring_hash: its state follows the rules of A42, whatever its endpoints'",
          "[lb][ring_hash][A42][B3]") {
  for (const std::size_t count : {1U, 2U, 3U, 4U}) {
    std::string states(count, 'i');
    const auto next = [&states] {
      const std::string letters = "icrf";
      for (char& state : states) {
        const std::size_t at = letters.find(state) + 1;
        state = letters[at % letters.size()];
        if (at < letters.size()) return true;
      }
      return false;
    };
    do {
      CAPTURE(states);
      Strings names;
      std::map<std::string, char> wanted;
      for (std::size_t at = 0; at < count; ++at) {
        names.push_back(std::to_string(at));
        if (states[at] != 'i') wanted[names.back()] = states[at];
      }
      Harness leaf(names);
      leaf.bring(wanted);

      const auto of = [&](char state) { return std::ranges::count(states, state); };
      const auto failed = of('f');
      const bool unasked = of('r') == 0 && of('c') == 0 && failed > 0 && of('i') > 0;
      CHECK(leaf.held.size() == count - static_cast<std::size_t>(of('i')) + (unasked ? 1 : 0));
      ConnectivityState expected = kFailed;
      if (of('r') > 0) {
        expected = kReady;
      } else if (failed >= 2) {
        expected = kFailed;
      } else if (of('c') > 0 || unasked) {
        expected = kConnecting;
      } else if (failed == 1 && count > 1) {
        expected = kConnecting;
      } else if (of('i') > 0) {
        expected = kIdle;
      }
      CHECK(leaf.state() == expected);
    } while (next());
  }
}

TEST_CASE("ring_hash: after a failure one endpoint after another is tried until one is READY",
          "[lb][ring_hash][A42][B3]") {
  Harness leaf({"a", "b", "c", "d"});
  leaf.want("b");
  leaf.idle("b");
  leaf.fail("b");
  CHECK(leaf.state() == kConnecting);
  CHECK(leaf.held == std::set<std::string>{"a", "b"});
  leaf.idle("a");
  leaf.fail("a");
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.held == std::set<std::string>{"a", "b", "c"});
  leaf.idle("c");
  leaf.ready("c");
  CHECK(leaf.state() == kReady);
  CHECK(leaf.held == std::set<std::string>{"a", "b", "c"});
  leaf.fail("a");  // No other endpoint is connected while one is READY.
  CHECK(leaf.held.size() == 3);
  leaf.idle("c");
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.held.contains("d"));
}

TEST_CASE("ring_hash: who fails as soon as it is tried does not stop the search",
          "[lb][ring_hash][A42]") {
  Harness leaf({"a", "b,x", "c"});
  // x is held, and in back-off, for "a,x".
  leaf.list(Strings{"a,x", "x,a", "c"});
  leaf.want("a");
  leaf.idle("a");
  leaf.idle("x");
  leaf.fail("a");
  leaf.fail("x");
  CHECK(leaf.held == std::set<std::string>{"a", "c", "x"});
}

// --- picks -----------------------------------------------------------------

TEST_CASE("ring_hash: a pick goes along the ring past those that failed",
          "[lb][ring_hash][A42][A61]") {
  struct Row {
    const char* states;  // Of a, b, c, which the pick meets in this order.
    const char* answer;
  };

  const auto row = GENERATE(values<Row>({
      {"rii", "complete a"},
      {"irr", "queue, connect a"},
      {"crr", "queue"},
      {"frf", "complete b"},
      {"fcr", "queue"},
      {"fir", "queue, connect b"},
      {"ffr", "complete c"},
      {"ffc", "queue"},
      {"rff", "complete a"},
  }));
  CAPTURE(row.states);
  std::map<std::string, char> states;
  for (std::size_t at = 0; at < 3; ++at) {
    if (row.states[at] != 'i') states[kAbc[at]] = row.states[at];
  }
  Harness leaf(kAbc);
  leaf.bring(states);
  CHECK(leaf.answer(kHash) == row.answer);
}

TEST_CASE("ring_hash: where all failed a pick fails, and says why", "[lb][ring_hash][A42][A61]") {
  Harness leaf(kAbc);
  leaf.bring({{"a", 'f'}, {"b", 'f'}, {"c", 'f'}});
  const std::string why = "ring_hash: all 3 endpoints failed; last error: c: refused by c";
  CHECK(leaf.answer(kHash) == "fail: " + why);
  CHECK(leaf.answer(PickArgs{}) == "fail: " + why);
  CHECK(leaf.published.back().status == absl::UnavailableError(why));
}

TEST_CASE("ring_hash: without endpoints it fails clearly", "[lb][ring_hash][A42]") {
  Harness leaf(kAbc);
  leaf.bring({{"a", 'r'}});
  leaf.list(Strings{});
  CHECK(leaf.held.empty());
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.answer(kHash) == "fail: ring_hash: no endpoints");
  leaf.list(kAbc);
  CHECK(leaf.state() == kIdle);
}

TEST_CASE("ring_hash: an unhealthy endpoint gets no pick and keeps its connection",
          "[lb][ring_hash][A61]") {
  Harness leaf(kAbc);
  leaf.bring({{"a", 'r'}, {"b", 'r'}});
  leaf.unhealthy("a");
  leaf.settle();
  CHECK(leaf.answer(kHash) == "complete b");
  CHECK(leaf.held.contains("a"));
  leaf.ready("a");
  leaf.settle();
  CHECK(leaf.answer(kHash) == "complete a");
}

TEST_CASE("ring_hash: a pick says which endpoint it chose", "[lb][ring_hash][A61]") {
  Harness leaf(kAbc);
  leaf.bring({{"b", 'r'}});
  const PickResult result = leaf.ask({.hash = xx_hash("b_0")});
  const auto& complete = std::get<Complete>(result.outcome);
  REQUIRE(complete.endpoint != nullptr);
  CHECK(complete.endpoint->endpoint->addresses.front() == Address("b"));
}

TEST_CASE("ring_hash: an endpoint of several addresses is one on the ring, by its first",
          "[lb][ring_hash][A61]") {
  Harness leaf({"a,x", "b,y"});
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

// --- chance ----------------------------------------------------------------

TEST_CASE("ring_hash: without a hash a pick goes by chance, the same for all picks of a call",
          "[lb][ring_hash][A42]") {
  Harness leaf(kAbc);
  leaf.bring({{"a", 'r'}, {"b", 'r'}, {"c", 'r'}});
  std::map<std::string, int> shares;
  for (std::uint64_t seed = 0; seed < 3'000; ++seed) {
    const std::string answer = leaf.answer({.seed = seed});
    REQUIRE(leaf.answer({.seed = seed}) == answer);
    ++shares[answer];
  }
  REQUIRE(shares.size() == 3);
  for (const auto& [answer, count] : shares)
    CHECK(count == Approx(1'000).margin(250));
}

TEST_CASE("ring_hash: by chance a pick takes the first READY, and connects one at most",
          "[lb][ring_hash][A76]") {
  struct Row {
    const char* states;
    const char* answer;
  };

  const auto row = GENERATE(values<Row>({
      {"rii", "complete a"},
      {"iir", "complete c, connect a"},
      {"fir", "complete c, connect b"},
      {"iic", "queue"},
      {"icr", "complete c"},  // An endpoint connects already.
      {"iii", "queue, connect a"},
      {"fcf", "queue"},
  }));
  CAPTURE(row.states);
  Harness leaf(kAbc);
  std::map<std::string, char> states;
  for (std::size_t at = 0; at < 3; ++at) {
    if (row.states[at] != 'i') states[kAbc[at]] = row.states[at];
  }
  leaf.bring(states);
  std::uint64_t seed = 0;
  while (order_from(kAbc, draw(seed, Salt::kRequestHash)) != kAbc)
    ++seed;
  CHECK(leaf.answer({.seed = seed}) == row.answer);
}

TEST_CASE("ring_hash: request_hash_header takes the place of the route's hash",
          "[lb][ring_hash][A76]") {
  Harness leaf(kAbc, by_header("session"));
  leaf.bring({{"a", 'r'}, {"b", 'r'}, {"c", 'r'}});
  const auto reaches = [&](const TestHeaders& headers, std::uint64_t hash) {
    return leaf.answer({.headers = &headers, .seed = 1, .hash = hash});
  };
  const auto owner = [&](absl::string_view key) {
    return "complete " + order_from(kAbc, xx_hash(key)).front();
  };
  const std::string by_chance = "complete " + order_from(kAbc, draw(1, Salt::kRequestHash)).front();
  for (std::uint64_t hash = 0; hash < 5; ++hash) {
    const std::uint64_t other = draw(hash, Salt::kDrop);
    for (const char* value : {"1", "2", "3", "4"})
      CHECK(reaches({{"session", value}}, other) == owner(value));
    CHECK(reaches({{"session", "x"}, {"session", "y"}}, other) == owner("x,y"));
    CHECK(reaches({{"session", ""}}, other) == by_chance);
    CHECK(reaches({{"other", "1"}}, other) == by_chance);
    CHECK(leaf.answer({.seed = 1, .hash = other}) == by_chance);
  }
}

// --- the ring --------------------------------------------------------------

TEST_CASE("ring_hash: an endpoint stands where its hash key says", "[lb][ring_hash][A76]") {
  const auto keyed = [](const char* address) {
    Endpoints slice = *slice_of({address, "b", "c"});
    auto locality = *slice.priorities[0].localities[0];
    locality.endpoints[0].hash_key = "pod-1";
    slice.priorities[0].localities[0] = std::make_shared<const Locality>(std::move(locality));
    return slice;
  };
  Harness leaf;
  leaf.list(keyed("a"));
  const std::uint64_t hash = xx_hash("pod-1_0");
  CHECK(leaf.answer(hash) == "queue, connect a");
  leaf.list(keyed("a2"));
  leaf.settle();
  CHECK(leaf.answer(hash) == "queue, connect a2");

  // Another hash key for the same address is another place on the ring.
  Harness plain(kAbc);
  CHECK(plain.answer(xx_hash("a_0")) == "queue, connect a");
  plain.list(keyed("a"));
  plain.settle();
  CHECK(plain.answer(hash) == "queue, connect a");
}

TEST_CASE("ring_hash: shares are those of locality and endpoint", "[lb][ring_hash][A42][A113]") {
  Endpoints slice;
  const auto weighed = [](const char* name, std::uint32_t weight, auto endpoints) {
    Locality locality;
    locality.name.zone = name;
    locality.weight = weight;
    for (const auto& [address, own] : endpoints)
      locality.endpoints.push_back({.addresses = {Address(address)}, .weight = own});
    return std::make_shared<const Locality>(std::move(locality));
  };
  using Weighted = std::vector<std::pair<const char*, std::uint32_t>>;
  slice.priorities.push_back(
      {{weighed("x", 3, Weighted{{"a", 2}, {"b", 1}}), weighed("y", 1, Weighted{{"c", 7}})}});
  Harness leaf;
  leaf.list(slice);
  leaf.bring({{"a", 'r'}, {"b", 'r'}, {"c", 'r'}});
  std::map<std::string, int> shares;
  constexpr int kCalls = 20'000;
  for (std::uint64_t call = 0; call < kCalls; ++call)
    ++shares[leaf.answer(draw(call, Salt::kDrop))];
  // 3/4 · 2/3, 3/4 · 1/3, 1/4: whatever the localities' sizes.
  CHECK(shares["complete a"] == Approx(kCalls * 0.50).epsilon(0.15));
  CHECK(shares["complete b"] == Approx(kCalls * 0.25).epsilon(0.2));
  CHECK(shares["complete c"] == Approx(kCalls * 0.25).epsilon(0.2));
}

TEST_CASE("ring_hash: the ring is no larger than the runtime allows", "[lb][ring_hash][A42]") {
  PolicyOptions options;
  options.ring_size_cap = 2;
  Harness leaf(options);
  leaf.config.min_ring_size = 1024;
  leaf.list(Strings{"a", "b", "c", "d"});
  std::set<std::string> asked;
  for (std::uint64_t call = 0; call < 200; ++call) {
    const PickResult result = leaf.ask({.hash = draw(call, Salt::kDrop)});
    if (result.ask.has_value()) asked.insert(result.ask->address.str());
  }
  CHECK(asked == std::set<std::string>{"a", "c"});
}

TEST_CASE("ring_hash: an endpoint without a point on the ring does not count",
          "[lb][ring_hash][A42]") {
  PolicyOptions options;
  options.ring_size_cap = 2;
  Harness leaf(options);
  leaf.config.min_ring_size = 1024;
  leaf.list(Strings{"a", "b", "c", "d"});  // On the ring: a and c.
  const std::string why = "ring_hash: all 2 endpoints failed; last error: c: refused by c";

  SECTION("it is not connected unasked") {
    leaf.step(IdleExitRequested{});
    CHECK(leaf.held == std::set<std::string>{"a"});
    leaf.bring({{"a", 'f'}});
    CHECK(leaf.held == std::set<std::string>{"a", "c"});
    CHECK(leaf.state() == kConnecting);
    leaf.bring({{"c", 'f'}});
    CHECK(leaf.held == std::set<std::string>{"a", "c"});
    CHECK(leaf.state() == kFailed);
    CHECK(leaf.published.back().status == absl::UnavailableError(why));
  }
  SECTION("it is neither READY, nor a failure, for the policy") {
    leaf.bring({{"b", 'r'}});
    CHECK(leaf.state() == kIdle);
    leaf.bring({{"a", 'f'}, {"c", 'f'}});
    CHECK(leaf.state() == kFailed);
    CHECK(leaf.answer(kHash) == "fail: " + why);
    CHECK(leaf.answer(PickArgs{}) == "fail: " + why);
    leaf.bring({{"d", 'f'}});
    CHECK(leaf.published.back().status == absl::UnavailableError(why));
    leaf.ready("c");  // The first of the READY ones in the list is not it.
    CHECK(leaf.state() == kReady);
    CHECK(leaf.answer(kHash) == "complete c");
  }
  SECTION("until a list gives it one, and from when a list takes it away") {
    leaf.bring({{"b", 'r'}, {"d", 'f'}});
    CHECK(leaf.state() == kIdle);
    leaf.list(Strings{"b", "d"});
    leaf.settle();
    CHECK(leaf.state() == kReady);
    CHECK(leaf.answer(kHash) == "complete b");
    leaf.idle("b");
    CHECK(leaf.state() == kConnecting);
    leaf.list(Strings{"d"});
    CHECK(leaf.state() == kFailed);
    CHECK(leaf.published.back().status.message() ==
          "ring_hash: the only endpoint failed; last error: d: refused by d");
    leaf.list(Strings{"a", "c", "d"});
    leaf.settle();
    CHECK(leaf.state() == kIdle);
  }
}

TEST_CASE("ring_hash: another size is another ring, of the same endpoints",
          "[lb][ring_hash][A42]") {
  Harness leaf(kAbc);
  const auto reached = [&] {
    leaf.list(kAbc);
    leaf.settle();
    std::set<std::string> asked;
    for (std::uint64_t call = 0; call < 200; ++call) {
      const PickResult result = leaf.ask({.hash = draw(call, Salt::kDrop)});
      if (result.ask.has_value()) asked.insert(result.ask->address.str());
    }
    return asked;
  };
  leaf.config.min_ring_size = leaf.config.max_ring_size = 1;
  CHECK(reached() == std::set<std::string>{"a"});
  leaf.config.min_ring_size = leaf.config.max_ring_size = 1024;
  CHECK(reached() == std::set<std::string>{"a", "b", "c"});
}

TEST_CASE("ring_hash: a list or a configuration that says the same changes nothing",
          "[lb][ring_hash]") {
  Harness leaf(kAbc);
  leaf.bring({{"a", 'r'}});
  CHECK(leaf.list(kAbc).size() == 1);  // Applied.
  const std::size_t published = leaf.published.size();

  leaf.config.max_ring_size = 4096;  // As the cap has it.
  CHECK(leaf.list(kAbc).size() == 1);
  leaf.config.min_ring_size = 2048;
  leaf.list(kAbc);
  leaf.settle();
  CHECK(leaf.published.size() == published + 1);
  leaf.config.request_hash_header = "session";
  leaf.list(kAbc);
  leaf.settle();
  CHECK(leaf.published.size() == published + 2);
}

TEST_CASE("ring_hash: an endpoint that stays keeps its connection and its keys",
          "[lb][ring_hash][A42][A61]") {
  Harness leaf(kAbc);
  leaf.config.min_ring_size = leaf.config.max_ring_size = 1;
  leaf.bring({{"a", 'r'}, {"b", 'r'}, {"c", 'r'}});
  const LbEffects effects = leaf.list(Strings{"c", "a"});
  CHECK(count_of<AcquireSubchannel>(effects) == 0);
  CHECK(count_of<ReleaseSubchannel>(effects) == 1);
  leaf.settle();
  CHECK(leaf.state() == kReady);
}

TEST_CASE("ring_hash: a burst of 10,000 costs one picker", "[lb][ring_hash][scale]") {
  Strings endpoints;
  for (int number = 0; number < 10'000; ++number)
    endpoints.push_back(absl::StrCat("e", number));
  Harness leaf(endpoints);
  for (const std::string& endpoint : endpoints)
    leaf.want(endpoint);
  leaf.settle();
  const std::size_t published = leaf.published.size();
  for (const std::string& endpoint : endpoints)
    leaf.ready(endpoint);
  leaf.settle();
  CHECK(leaf.published.size() == published + 2);  // The edge to READY at once, the rest together.
}

// --- the document's pseudo-code, step by step ------------------------------

std::string walk(const Strings& order, const std::map<std::string, char>& states, bool by_chance) {
  bool requested = false;
  if (by_chance) {
    for (const auto& [name, state] : states)
      requested = requested || state == 'c';
  }
  std::string connect;
  for (const std::string& name : order) {
    const auto found = states.find(name);
    const char state = found == states.end() ? 'i' : found->second;
    if (state == 'r') return "complete " + name + connect;
    if (state == 'f') continue;
    if (state == 'i' && !requested) connect = ", connect " + name;
    if (!by_chance) return "queue" + connect;
    requested = true;
  }
  return requested ? "queue" + connect : "fail";
}

TEST_CASE("ring_hash: every pick is the document's", "[lb][ring_hash][A42][A61][A76][S5]") {
  CHECK(test::holds("picks as in the documents", 1'000, [] {
    const auto count = *rc::gen::inRange(1, 7);
    const auto letters = *rc::gen::container<std::string>(static_cast<std::size_t>(count),
                                                          rc::gen::element('i', 'c', 'r', 'f'));
    Strings names;
    std::map<std::string, char> states;
    for (int at = 0; at < count; ++at) {
      names.push_back(std::to_string(at));
      if (letters[static_cast<std::size_t>(at)] != 'i')
        states[names.back()] = letters[static_cast<std::size_t>(at)];
    }
    Harness leaf(names);
    leaf.bring(states);
    for (const std::string& held : leaf.held) {
      if (!states.contains(held)) states[held] = 'c';  // Tried unasked.
    }
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto hash = *rc::gen::arbitrary<std::uint64_t>();
    const auto matches = [](const std::string& answer, const std::string& expected) {
      return expected == "fail" ? answer.rfind("fail: ", 0) == 0 : answer == expected;
    };
    const std::string by_chance =
        walk(order_from(names, draw(seed, Salt::kRequestHash)), states, true);
    RC_ASSERT(matches(leaf.answer({.seed = seed}), by_chance));
    leaf.bring({});
    leaf.list(names);
    Harness again(names);
    again.bring(states);
    RC_ASSERT(matches(again.answer(hash), walk(order_from(names, hash), states, false)));
  }));
}

}  // namespace
}  // namespace signalbox::lb
