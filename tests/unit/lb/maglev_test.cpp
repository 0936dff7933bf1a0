// SPDX-License-Identifier: Apache-2.0
//
// maglev: its table beside Envoy's, and where its calls go.
#include "lb/leaf/maglev.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "lb/leaf/maglev_table.hpp"
#include "lb/xx_hash.hpp"
#include "tests/support/property.hpp"
#include "tests/support/step_log.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {
namespace {

constexpr std::uint32_t kSize = 65'537;

std::vector<std::string> addresses(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t number = 0; number < count; ++number)
    names.push_back(absl::StrCat("10.0.", number / 250, ".", number % 250, ":443"));
  return names;
}

std::vector<HashItem> items_of(const std::vector<std::string>& names,
                               const std::vector<std::uint64_t>& weights = {}) {
  std::vector<HashItem> items;
  for (std::size_t at = 0; at < names.size(); ++at)
    items.push_back({names[at], weights.empty() ? 1 : weights[at]});
  return items;
}

std::vector<std::uint32_t> slots_of(const MaglevTable& table) {
  std::vector<std::uint32_t> slots;
  for (std::uint32_t slot = 0; slot < table.size(); ++slot)
    slots.push_back(table.item(slot));
  return slots;
}

std::vector<std::size_t> counts_of(const MaglevTable& table, std::size_t items) {
  std::vector<std::size_t> counts(items);
  for (std::uint32_t slot = 0; slot < table.size(); ++slot)
    ++counts[table.item(slot)];
  return counts;
}

const std::vector<std::string> kEnvoysHosts{
    "127.0.0.1:90", "127.0.0.1:91", "127.0.0.1:92", "127.0.0.1:93", "127.0.0.1:94", "127.0.0.1:95"};

}  // namespace

TEST_CASE("maglev: the table is Envoy's", "[lb][maglev]") {
  // The expected tables are those of Envoy's own tests of its policy.
  using Slots = std::vector<std::uint32_t>;
  CHECK(slots_of(MaglevTable(items_of(kEnvoysHosts), 7)) == Slots{2, 4, 0, 1, 5, 0, 3});
  // In the reverse order the same endpoints have the same slots: place i becomes place 5 - i.
  auto reversed = kEnvoysHosts;
  std::ranges::reverse(reversed);
  CHECK(slots_of(MaglevTable(items_of(reversed), 7)) == Slots{3, 1, 5, 4, 0, 5, 2});
  const std::vector<std::string> two{"127.0.0.1:90", "127.0.0.1:91"};
  CHECK(counts_of(MaglevTable(items_of(two, {1, 2}), 17), 2) == std::vector<std::size_t>{6, 11});
  CHECK(counts_of(MaglevTable(items_of(two, {127, 1}), 17), 2) == std::vector<std::size_t>{16, 1});
}

namespace {

// The table as Envoy builds it: round after round, each endpoint in the order of the keys takes a
// slot if round × weight has reached its target, which then rises by the greatest weight.
std::vector<std::uint32_t> table_by_rounds(const std::vector<HashItem>& items, std::uint32_t size) {
  std::vector<std::uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t at) { return items[at].key; });
  const std::uint64_t heaviest = std::ranges::max(items, {}, &HashItem::weight).weight;
  std::vector<std::uint64_t> targets(items.size());
  std::vector<std::uint64_t> nexts(items.size());
  std::vector<std::uint32_t> slots(size, UINT32_MAX);
  std::uint32_t filled = 0;
  for (std::uint64_t round = 1; filled < size; ++round) {
    for (const std::uint32_t at : order) {
      if (filled == size || round * items[at].weight < targets[at]) continue;
      targets[at] += heaviest;
      const std::uint64_t first = xx_hash(items[at].key) % size;
      const std::uint64_t step = xx_hash(items[at].key, 1) % (size - 1) + 1;
      std::uint64_t slot = 0;
      do {
        slot = (first + step * nexts[at]++) % size;
      } while (slots[slot] != UINT32_MAX);
      slots[slot] = at;
      ++filled;
    }
  }
  return slots;
}

}  // namespace

TEST_CASE("maglev: with any weights the table is Envoy's", "[lb][maglev][property]") {
  const auto names = addresses(20);
  CHECK(test::holds("tables by rounds", 100, [&](const std::vector<std::uint8_t>& any) {
    if (any.empty()) return;
    std::vector<std::uint64_t> weights;
    for (std::size_t at = 0; at < std::min(any.size(), names.size()); ++at)
      weights.push_back(1 + any[at]);
    const std::vector<std::string> some(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(weights.size()));
    const auto items = items_of(some, weights);
    RC_ASSERT(slots_of(MaglevTable(items, 251)) == table_by_rounds(items, 251));
  }));
}

TEST_CASE("maglev: limits of a table", "[lb][maglev]") {
  CHECK(MaglevTable().size() == 0);
  CHECK(MaglevTable({}, kSize).size() == 0);
  CHECK(slots_of(MaglevTable(items_of({"a"}), 2)) == std::vector<std::uint32_t>{0, 0});

  const auto names = addresses(20);
  const MaglevTable crowded(items_of(names), 17);
  std::size_t with_slot = 0;
  for (std::size_t item = 0; item < names.size(); ++item)
    with_slot += crowded.has_slot(item) ? 1 : 0;
  CHECK(with_slot == 17);
  CHECK_FALSE(crowded.has_slot(names.size()));
}

TEST_CASE("maglev: of 1,000 endpoints one leaves, and few keys move", "[lb][maglev][property]") {
  const auto names = addresses(1'000);
  const MaglevTable before(items_of(names), kSize);
  for (const std::size_t gone : {0U, 17U, 500U, 999U}) {
    auto rest = names;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(gone));
    const MaglevTable after(items_of(rest), kSize);
    std::size_t moved = 0;
    for (std::uint32_t slot = 0; slot < kSize; ++slot)
      moved += names[before.item(slot)] != rest[after.item(slot)] ? 1 : 0;
    CAPTURE(gone, moved);
    CHECK(moved >= kSize / 1'000);
    CHECK(static_cast<double>(moved) <= kSize * (0.001 + 0.02));
  }
}

TEST_CASE("maglev: slots follow weights, and each endpoint has one", "[lb][maglev][property]") {
  const auto names = addresses(64);
  CHECK(test::holds("slots by weight", 60, [&](const std::vector<std::uint32_t>& any) {
    if (any.empty()) return;
    std::vector<std::uint64_t> weights;
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < std::min(any.size(), names.size()); ++at) {
      weights.push_back(1 + any[at] % 1'000);
      sum += weights.back();
    }
    const std::vector<std::string> some(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(weights.size()));
    const MaglevTable table(items_of(some, weights), 10'007);
    const auto counts = counts_of(table, some.size());
    for (std::size_t at = 0; at < some.size(); ++at) {
      RC_ASSERT(table.has_slot(at));
      const double exact = 10'007.0 * static_cast<double>(weights[at]) / static_cast<double>(sum);
      RC_ASSERT(std::abs(static_cast<double>(counts[at]) - exact) <= 2.0 + exact * 0.01);
    }
  }));
}

namespace {

class MaglevHarness : public LeafHarness {
 public:
  explicit MaglevHarness(std::uint32_t size = 251)
      : LeafHarness(make_leaf(MaglevConfig{}, PolicyContext{PolicyPath{"p"}, 1, nullptr})),
        config(make_lb_config(MaglevConfig{size})),
        table_size(size) {}

  void list(const std::vector<std::string>& endpoints) {
    names = endpoints;
    update(endpoints, config);
  }

  void settle() { step(RebuildDue{}); }

  /// The endpoint that the table of the current endpoints has for this hash.
  std::string owner(std::uint64_t hash) const {
    const MaglevTable table(items_of(names), table_size);
    return names[table.item(table.find(hash))];
  }

  std::string answer(const PickArgs& args) const {
    const PickResult result = published.back().picker->pick(args);
    if (const auto* complete = std::get_if<Complete>(&result.outcome))
      return complete->connection->address().str();
    return std::holds_alternative<Queue>(result.outcome) ? "queue" : "fail";
  }

  LbConfigPtr config;
  std::uint32_t table_size;
  std::vector<std::string> names;
};

const std::vector<std::string> kAbc{"a", "b", "c"};

}  // namespace

TEST_CASE("maglev: equal hashes go to the endpoint of their slot", "[lb][maglev]") {
  MaglevHarness maglev;
  maglev.list(kAbc);
  CHECK(maglev.held == std::set<std::string>{"a", "b", "c"});
  CHECK(maglev.answer({.hash = 1}) == "queue");
  for (const std::string& name : kAbc)
    maglev.ready(name);
  maglev.settle();
  std::map<std::string, int> reached;
  for (std::uint64_t hash = 0; hash < 1'000; ++hash) {
    const std::string owner = maglev.owner(hash);
    REQUIRE(maglev.answer({.seed = hash * 7, .hash = hash}) == owner);
    ++reached[owner];
  }
  CHECK(reached.size() == 3);
}

TEST_CASE("maglev: an endpoint that is down gives away its own keys alone", "[lb][maglev]") {
  MaglevHarness maglev;
  maglev.list(kAbc);
  for (const std::string& name : kAbc)
    maglev.ready(name);
  maglev.settle();
  maglev.idle("b");
  maglev.settle();
  // Endpoint b connects again. Calls with its hashes wait, and calls without a hash go elsewhere.
  for (std::uint64_t hash = 0; hash < 200; ++hash) {
    const std::string owner = maglev.owner(hash);
    REQUIRE(maglev.answer({.hash = hash}) == (owner == "b" ? "queue" : owner));
    REQUIRE(maglev.answer({.seed = hash}) != "queue");
  }
  maglev.fail("b");
  maglev.settle();
  std::set<std::string> heirs;
  for (std::uint64_t hash = 0; hash < 251; ++hash) {
    const std::string owner = maglev.owner(hash);
    const std::string answer = maglev.answer({.hash = hash});
    if (owner == "b") heirs.insert(answer);
    REQUIRE((owner == "b" ? answer != "b" : answer == owner));
  }
  CHECK(heirs == std::set<std::string>{"a", "c"});
  maglev.connecting("b");
  maglev.ready("b");
  maglev.settle();
  CHECK(maglev.answer({.hash = 3}) == maglev.owner(3));
}

TEST_CASE("maglev: the time of a pick is bounded when most endpoints are down", "[lb][maglev]") {
  MaglevHarness maglev(65'537);
  const auto names = addresses(2'000);
  maglev.list(names);
  maglev.ready(names[7]);
  for (std::size_t at = 0; at < names.size(); ++at) {
    if (at != 7) maglev.fail(names[at]);
  }
  maglev.settle();
  for (std::uint64_t hash = 0; hash < 500; ++hash)
    REQUIRE(maglev.answer({.hash = hash * 131}) == names[7]);
  const auto steps = testing::steps_of(maglev.published.back().picker, {.hash = 0});
  CHECK_THAT(absl::StrJoin(steps, "\n"), Catch::Contains("none of 256 slots is READY"));

  // Of two READY endpoints each gets calls from such slots: about half.
  maglev.connecting(names[8]);
  maglev.ready(names[8]);
  maglev.settle();
  int calls = 0;
  for (std::uint64_t hash = 0; hash < 500; ++hash)
    calls += maglev.answer({.hash = hash * 131}) == names[8] ? 1 : 0;
  CHECK(calls > 150);
  CHECK(calls < 350);
}

TEST_CASE("maglev: without weighted shuffling endpoints weigh their locality's weight times own",
          "[lb][maglev]") {
  constexpr std::uint32_t kSlots = 10'007;
  PolicyContext context{PolicyPath{"p"}, 1, nullptr};
  context.options.weighted_shuffling = false;
  LeafHarness leaf(make_leaf(MaglevConfig{}, context));
  leaf.step(ConfigUpdated{1,
                          make_lb_config(MaglevConfig{kSlots}),
                          nullptr,
                          std::make_shared<const Endpoints>(heavy_and_light())});
  for (const char* address : {"a", "b", "c"})
    leaf.ready(address);
  leaf.step(RebuildDue{});
  std::map<std::string, int> slots;
  for (std::uint64_t hash = 0; hash < kSlots; ++hash) {
    const PickResult result = leaf.published.back().picker->pick({.hash = hash});
    ++slots[std::get<Complete>(result.outcome).connection->address().str()];
  }
  CHECK(slots["a"] == Approx(kSlots * 6 / 16.0).margin(100));
  CHECK(slots["b"] == Approx(kSlots * 3 / 16.0).margin(100));
  CHECK(slots["c"] == Approx(kSlots * 7 / 16.0).margin(100));
}

TEST_CASE("maglev: an explanation has the hash's origin, its slot, and the slots passed",
          "[lb][maglev][explain]") {
  MaglevHarness maglev;
  maglev.list(kAbc);
  maglev.ready("a");
  maglev.ready("b");
  maglev.fail("c");
  maglev.settle();
  const auto told = [&](const PickArgs& args) {
    return testing::steps_of(maglev.published.back().picker, args);
  };
  const MaglevTable table(items_of(kAbc), maglev.table_size);
  for (std::uint64_t hash = 250; hash < 260; ++hash) {
    const std::uint32_t slot = table.find(hash);
    std::uint32_t passed = 0;
    while (kAbc[table.item((slot + passed) % table.size())] == "c")
      ++passed;
    const auto steps = told({.hash = hash});
    REQUIRE(steps.size() == 3);  // The first step names c, which is not READY.
    CHECK(steps[1] == absl::StrCat("maglev: begins at slot ",
                                   slot,
                                   " of 251; the call's hash is ",
                                   hash,
                                   ", by the hash policies of its route; CDS"));
    CHECK(steps[2] == absl::StrCat("maglev: ",
                                   maglev.answer({.hash = hash}),
                                   "; the first READY one from there; ",
                                   passed,
                                   " slots were passed; CDS"));
  }
  CHECK_THAT(told({.seed = 1}).at(1), Catch::EndsWith(", by chance: nothing of it is hashed; CDS"));

  maglev.idle("b");
  maglev.settle();
  std::uint64_t hash = 0;
  while (maglev.owner(hash) != "b")
    ++hash;
  CHECK(told({.hash = hash}).back() ==
        "maglev: the call waits; where it belongs is being connected; CDS");
}

TEST_CASE("maglev: an endpoint that the list has twice is once in the table", "[lb][maglev]") {
  MaglevHarness maglev;
  maglev.list({"a", "a", "b"});
  maglev.names = {"a", "b"};
  maglev.ready("a");
  maglev.ready("b");
  maglev.settle();
  for (std::uint64_t hash = 0; hash < maglev.table_size; ++hash)
    REQUIRE(maglev.answer({.hash = hash}) == maglev.owner(hash));
}

TEST_CASE("maglev: without endpoints, and when all fail, calls fail", "[lb][maglev]") {
  MaglevHarness maglev;
  maglev.list({});
  CHECK(maglev.pick() == "fail: maglev: no endpoints");
  maglev.list({"a"});
  maglev.fail("a");
  CHECK(maglev.state() == ConnectivityState::kTransientFailure);
  CHECK(maglev.pick() == "fail: maglev: the only endpoint failed; last error: a: refused by a");
}

TEST_CASE("maglev: endpoints without a slot do not count", "[lb][maglev]") {
  MaglevHarness maglev(2);
  maglev.list(kAbc);
  const MaglevTable table(items_of(kAbc), 2);
  std::string left_out;
  for (std::size_t at = 0; at < kAbc.size(); ++at) {
    if (!table.has_slot(at)) left_out = kAbc[at];
  }
  REQUIRE(left_out.size() == 1);
  maglev.ready(left_out);
  maglev.settle();
  CHECK(maglev.state() == ConnectivityState::kConnecting);
  CHECK(maglev.answer({.hash = 0}) == "queue");
}

TEST_CASE("maglev: a new size makes a new table", "[lb][maglev]") {
  MaglevHarness maglev(7);
  maglev.list(kAbc);
  for (const std::string& name : kAbc)
    maglev.ready(name);
  maglev.settle();
  maglev.config = make_lb_config(MaglevConfig{1'009});
  maglev.table_size = 1'009;
  maglev.list(kAbc);
  maglev.settle();
  for (std::uint64_t hash = 0; hash < 1'009; ++hash)
    REQUIRE(maglev.answer({.hash = hash}) == maglev.owner(hash));
}

}  // namespace signalbox::lb
