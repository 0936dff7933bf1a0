// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/round_robin.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/support/printed.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb::round_robin_test {
namespace {

using Strings = std::vector<std::string>;
constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kReady = ConnectivityState::kReady;
constexpr auto kFailed = ConnectivityState::kTransientFailure;

LeafHarness round_robin(std::uint64_t seed = 1) {
  return LeafHarness(make_leaf(RoundRobinConfig{}, PolicyContext{PolicyPath{"p"}, seed, nullptr}));
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

TEST_CASE("round_robin: a pick has its endpoint's zone, as the caller sees it",
          "[lb][round_robin]") {
  PolicyContext context;
  context.options.caller = {"north", "a", ""};
  LeafHarness leaf(make_leaf(RoundRobinConfig{}, std::move(context)));
  auto slice = std::make_shared<Endpoints>();
  std::vector<LocalityPtr>& localities = slice->priorities.emplace_back().localities;
  for (const char* zone : {"a", "b", ""}) {
    Locality locality{{"north", zone, ""}, 1, {}};
    for (const char* number : {"1", "2"})
      locality.endpoints.push_back({.addresses = {Address(std::string(zone) + number)}});
    localities.push_back(std::make_shared<const Locality>(std::move(locality)));
  }
  leaf.step(ConfigUpdated{1, make_lb_config(RoundRobinConfig{}), nullptr, slice});
  for (const char* address : {"a1", "a2", "b1", "b2", "1", "2"})
    leaf.ready(address);
  leaf.step(RebuildDue{});
  std::map<std::string, CallZone> zones;
  for (int i = 0; i < 6; ++i) {
    const auto complete = std::get<Complete>(leaf.published.back().picker->pick({}).outcome);
    zones[complete.connection->address().str()] = complete.zone;
  }
  CHECK(zones == std::map<std::string, CallZone>{{"a1", CallZone::kOwn},
                                                 {"a2", CallZone::kOwn},
                                                 {"b1", CallZone::kOther},
                                                 {"b2", CallZone::kOther},
                                                 {"1", CallZone::kUnknown},
                                                 {"2", CallZone::kUnknown}});
}

TEST_CASE("round_robin: connects to every endpoint of every priority at once",
          "[lb][round_robin][A61]") {
  LeafHarness leaf = round_robin();
  auto slice = std::make_shared<Endpoints>(*slice_of({"a", "b"}));
  slice->priorities.push_back(slice_of({"c"})->priorities.front());
  slice->priorities.front().localities.push_back(
      slice_of({"d"})->priorities.front().localities.front());
  leaf.configure(slice);

  CHECK(leaf.held == std::set<std::string>{"a", "b", "c", "d"});
  CHECK(leaf.state() == kConnecting);
  CHECK(leaf.pick() == "queue");
  CHECK(leaf.applied == 0);
  for (const char* address : {"a", "b", "c", "d"})
    leaf.idle(address);
  CHECK(leaf.applied == 1);
  CHECK(leaf.connects == Strings{"a", "b", "c", "d"});
}

TEST_CASE("round_robin: a configuration is applied when every new address was heard of",
          "[lb][round_robin][applied]") {
  LeafHarness leaf = ready_on({"a"});
  REQUIRE(leaf.applied == 1);
  leaf.update({"a", "b", "c"});
  leaf.idle("b");
  CHECK(leaf.applied == 1);
  SECTION("all of them") {
    CHECK(std::holds_alternative<ReportApplied>(leaf.idle("c").back()));
    CHECK(leaf.applied == 2);
  }
  SECTION("nobody waits for one that is not wanted any more") {
    leaf.update({"a", "b"});
    CHECK(leaf.applied == 3);
  }
  SECTION("an endpoint that connects anew owes nothing") {
    leaf.ready("c");
    leaf.idle("c");
    leaf.update({"a", "c", "b"});
    CHECK(leaf.applied == 3);
  }
}

TEST_CASE("round_robin: on one thread calls are shared exactly evenly", "[lb][round_robin][A61]") {
  const LeafHarness leaf = ready_on({"a", "b", "c"});
  CHECK(shares(leaf, 300) == std::map<std::string, int>{{"a", 100}, {"b", 100}, {"c", 100}});
}

TEST_CASE("round_robin: a retry passes over the endpoints that its call has tried",
          "[lb][round_robin][retry]") {
  const LeafHarness leaf = ready_on({"a", "b", "c"});
  const auto pick = [&](const TriedAddresses& tried) {
    const PickResult result = leaf.published.back().picker->pick({.tried = &tried});
    return std::get<Complete>(result.outcome).connection->address().str();
  };
  std::map<std::string, int> shares;
  for (int i = 0; i < 300; ++i)
    ++shares[pick({Address("b"), Address("gone")})];
  CHECK(shares.size() == 2);
  CHECK_FALSE(shares.contains("b"));
  for (int i = 0; i < 10; ++i)
    CHECK(pick({Address("a"), Address("c")}) == "b");
  // If the call has tried all endpoints, the picker goes on as if it had tried none.
  std::set<std::string> round;
  for (int i = 0; i < 3; ++i)
    round.insert(pick({Address("a"), Address("b"), Address("c")}));
  CHECK(round.size() == 3);
}

TEST_CASE("round_robin: on every thread calls are shared exactly evenly", "[lb][round_robin]") {
  const LeafHarness leaf = ready_on({"a", "b", "c"});
  constexpr int kThreads = 3;
  std::array<std::map<std::string, int>, kThreads> seen;
  std::vector<std::thread> threads;
  for (auto& mine : seen)
    threads.emplace_back([&leaf, &mine] { mine = shares(leaf, 300); });
  for (std::thread& thread : threads)
    thread.join();
  std::map<std::string, int> all;
  for (const auto& mine : seen) {
    for (const auto& [address, count] : mine)
      all[address] += count;
  }
  CHECK(all == std::map<std::string, int>{{"a", 300}, {"b", 300}, {"c", 300}});
}

TEST_CASE("round_robin: a pick names the endpoint that it chose, and who counts its calls",
          "[lb][round_robin][A50][A61]") {
  struct Counts final : CallTracker {
    void ended(const CallEnd& /*end*/) const noexcept override {}
  };

  LeafHarness leaf = ready_on({"a"});
  const auto chosen = [&] {
    const PickResult result = leaf.published.at(leaf.published.size() - 1).picker->pick({});
    const ChosenEndpoint* endpoint = std::get<Complete>(result.outcome).endpoint;
    REQUIRE(endpoint != nullptr);
    CHECK(endpoint->locality != nullptr);
    CHECK(endpoint->endpoint->addresses == std::vector<Address>{Address{"a"}});
    return *endpoint;
  };
  CHECK(chosen().tracker == nullptr);

  SubchannelStateChanged counted;
  counted.address = Address{"a"};
  counted.state = kReady;
  counted.connection = std::make_shared<const Connection>(counted.address);
  counted.tracker = std::make_shared<const Counts>();
  leaf.step(counted);
  leaf.step(RebuildDue{});
  CHECK(chosen().tracker == counted.tracker);

  SECTION("and an update keeps both up to date") {
    Locality locality;
    locality.name.zone = "west";
    locality.endpoints.push_back(Endpoint{{Address{"a"}}, HealthStatus::kHealthy, 7});
    leaf.configure(std::make_shared<const Endpoints>(
        Endpoints{{{{std::make_shared<const Locality>(std::move(locality))}}}}));
    leaf.step(RebuildDue{});
    CHECK(chosen().tracker == counted.tracker);
    CHECK(chosen().locality->name.zone == "west");
    CHECK(chosen().endpoint->weight == 7);
  }
}

TEST_CASE("round_robin: clients begin at places of their own", "[lb][round_robin]") {
  std::set<std::string> first;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    LeafHarness leaf = round_robin(seed);
    leaf.update({"a", "b", "c"});
    for (const char* address : {"a", "b", "c"})
      leaf.ready(address);
    leaf.step(RebuildDue{});
    first.insert(leaf.pick());
  }
  CHECK(first.size() == 3);
}

TEST_CASE("round_robin: each picker begins at a place of its own", "[lb][round_robin]") {
  LeafHarness leaf = ready_on({"a", "b", "c"});
  std::set<std::string> first;
  for (int picker = 0; picker < 50; ++picker) {
    leaf.ready("a");  // Another connection, so another picker.
    leaf.step(RebuildDue{});
    first.insert(leaf.pick());
  }
  CHECK(first.size() == 3);
}

TEST_CASE("round_robin: its state is the best of its endpoints'", "[lb][round_robin][A61]") {
  struct Row {
    const char* when;
    std::string states;  // One letter per endpoint: r, c, f.
    ConnectivityState expected;
  };

  const auto row = GENERATE(values<Row>({
      {"all are ready", "rrr", kReady},
      {"one is ready, the others failed", "frf", kReady},
      {"one is ready, the others connect", "ccr", kReady},
      {"none is ready, one connects", "fcf", kConnecting},
      {"all connect", "ccc", kConnecting},
      {"all failed", "fff", kFailed},
  }));
  DYNAMIC_SECTION(row.when) {
    LeafHarness leaf = round_robin();
    leaf.update({"0", "1", "2"});
    for (std::size_t at = 0; at < row.states.size(); ++at) {
      leaf.idle(std::to_string(at));
      leaf.connecting(std::to_string(at));
      if (row.states[at] == 'r') leaf.ready(std::to_string(at));
      if (row.states[at] == 'f') leaf.fail(std::to_string(at));
    }
    CHECK(leaf.state() == row.expected);
  }
}

TEST_CASE("round_robin: says how many failed, and why the last did", "[lb][round_robin][A61]") {
  LeafHarness leaf = round_robin();
  leaf.update({"a", "b"});
  leaf.fail("b");
  leaf.fail("a");
  CHECK(leaf.pick() ==
        "fail: round_robin: all 2 endpoints failed; last error: "
        "a: refused by a");
  CHECK(leaf.published.back().status.code() == absl::StatusCode::kUnavailable);

  // What failed last is gone.
  leaf.update({"b"});
  leaf.step(RebuildDue{});
  CHECK(leaf.pick() ==
        "fail: round_robin: the only endpoint failed; last error: "
        "b: refused by b");
}

TEST_CASE("round_robin: names no error of an endpoint that has recovered",
          "[lb][round_robin][A61]") {
  LeafHarness leaf = round_robin();
  leaf.update({"a", "b"});
  leaf.fail("a");
  leaf.fail("b");
  leaf.ready("b");
  leaf.update({"a"});
  leaf.step(RebuildDue{});
  CHECK(leaf.pick() ==
        "fail: round_robin: the only endpoint failed; last error: "
        "a: refused by a");
}

TEST_CASE("round_robin: a failure has a reason, also where the judge gives none",
          "[lb][round_robin][A50]") {
  LeafHarness leaf = ready_on({"a"});
  SubchannelStateChanged ejected;
  ejected.address = Address{"a"};
  ejected.state = kReady;
  ejected.healthy = false;
  ejected.connection = std::make_shared<const Connection>(ejected.address);
  leaf.step(ejected);
  CHECK(leaf.pick() == "fail: round_robin: the only endpoint failed; last error: a: unhealthy");
}

TEST_CASE("round_robin: without endpoints it fails clearly", "[lb][round_robin]") {
  LeafHarness leaf = ready_on({"a"});
  leaf.update({});
  CHECK(leaf.held.empty());
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.pick() == "fail: round_robin: no endpoints");
  CHECK(leaf.published.back().status.code() == absl::StatusCode::kUnavailable);
  CHECK(leaf.applied == 2);
  CHECK(leaf.published.back().generation == 2);
}

TEST_CASE("round_robin: reconnects at once when an endpoint goes IDLE", "[lb][round_robin][A61]") {
  LeafHarness leaf = ready_on({"a", "b"});
  leaf.connects.clear();
  const LbEffects effects = leaf.idle("a");
  CHECK(leaf.connects == Strings{"a"});
  CHECK(count_of<AcquireSubchannel>(effects) == 0);
  CHECK(count_of<ReleaseSubchannel>(effects) == 0);
  leaf.step(RebuildDue{});
  CHECK(leaf.state() == kReady);
  CHECK(shares(leaf, 4) == std::map<std::string, int>{{"b", 4}});
  CHECK(leaf.reresolutions == 1);

  leaf.idle("b");
  CHECK(leaf.state() == kConnecting);
  leaf.fail("a");
  leaf.idle("a");
  CHECK(leaf.connects == Strings{"a", "b", "a"});
}

TEST_CASE("round_robin: a burst costs one picker", "[lb][round_robin]") {
  LeafHarness leaf = round_robin();
  Strings endpoints;
  for (int i = 0; i < 1000; ++i)
    endpoints.push_back(std::to_string(i));
  leaf.update(endpoints);
  for (const std::string& endpoint : endpoints)
    leaf.ready(endpoint);
  CHECK(leaf.published.size() == 2);  // CONNECTING, and the edge to READY.
  CHECK(leaf.rebuilds_ordered == 1);
  leaf.step(RebuildDue{});
  CHECK(leaf.published.size() == 3);
  CHECK(shares(leaf, 2000).size() == 1000);

  CHECK(leaf.step(RebuildDue{}).empty());
}

TEST_CASE("round_robin: what does not change the picker builds none", "[lb][round_robin]") {
  LeafHarness leaf = round_robin();
  leaf.update({"a", "b"});
  leaf.ready("a");
  leaf.step(RebuildDue{});
  CHECK(leaf.connecting("b").size() == 1);  // The only effect is ReportApplied.
  CHECK(leaf.connecting("b").empty());
  leaf.fail("b");
  leaf.step(RebuildDue{});  // The end of the burst: requests the re-resolution after b's failure.
  CHECK(leaf.reresolutions == 1);
  CHECK(leaf.published.size() == 3);  // The host report changed: one endpoint less is fit.
  CHECK(leaf.published[2].picker == leaf.published[1].picker);
}

TEST_CASE("round_robin: a burst of losses asks once for re-resolution", "[lb][round_robin]") {
  LeafHarness leaf = ready_on({"a", "b", "c"});
  for (const char* address : {"a", "b", "c"})
    leaf.idle(address);
  leaf.step(RebuildDue{});
  CHECK(leaf.reresolutions == 1);
}

TEST_CASE("round_robin: state edges do not wait for the burst", "[lb][round_robin][A56]") {
  LeafHarness leaf = round_robin();
  leaf.update({"a"});
  leaf.ready("a");
  CHECK(leaf.state() == kReady);
  leaf.unhealthy("a");
  CHECK(leaf.state() == kFailed);
  leaf.ready("a");
  CHECK(leaf.state() == kReady);
  leaf.idle("a");
  CHECK(leaf.state() == kConnecting);
  CHECK(leaf.published.size() == 5);
}

TEST_CASE("round_robin: endpoints that share an address share its hold", "[lb][round_robin]") {
  LeafHarness leaf = round_robin();
  const LbEffects effects = leaf.update({"a", "a,b"});
  CHECK(count_of<AcquireSubchannel>(effects) == 2);
  leaf.idle("b");
  leaf.ready("a");
  leaf.step(RebuildDue{});
  CHECK(leaf.held == std::set<std::string>{"a"});
  leaf.update({"a,b"});
  CHECK(leaf.held == std::set<std::string>{"a"});
  CHECK(leaf.state() == kReady);
}

TEST_CASE("round_robin: news of what it released is dropped", "[lb][round_robin]") {
  LeafHarness leaf = ready_on({"a", "b"});
  leaf.update({"b"});
  leaf.step(RebuildDue{});
  CHECK(leaf.ready("a").empty());
}

TEST_CASE("round_robin: events before the first configuration do nothing", "[lb][round_robin]") {
  LeafHarness leaf = round_robin();
  CHECK(leaf.step(IdleExitRequested{}).empty());
  CHECK(leaf.ready("a").empty());
  CHECK(leaf.step(RebuildDue{}).empty());
}

TEST_CASE("round_robin: a configuration sent twice changes nothing", "[lb][round_robin]") {
  LeafHarness leaf = ready_on({"a", "b"});
  --leaf.generation;
  CHECK(leaf.update({"a", "b"}).size() == 1);
  leaf.ready("a");
  leaf.step(RebuildDue{});
  CHECK(shares(leaf, 4) == std::map<std::string, int>{{"a", 2}, {"b", 2}});
}

// A plain model: a state of each endpoint, recounted from scratch after every event.
TEST_CASE("round_robin: agrees with a plain recount in any history", "[lb][round_robin][A61]") {
  const Strings all{"a", "b", "c", "d", "e"};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    LeafHarness leaf = round_robin(seed);
    std::map<std::string, char> model;  // READY, CONNECTING or failed; failed until READY (A61).
    std::uint64_t step = 0;
    const auto chance = [&](std::uint64_t bound) {
      return draw_below(seed, Salt::kRouteFraction, bound, ++step);
    };
    for (int event = 0; event < 150; ++event) {
      if (event == 0 || chance(15) == 0) {
        std::map<std::string, char> next;
        Strings list;
        for (const std::string& address : all) {
          if (chance(2) == 0) continue;
          list.push_back(address);
          next[address] = model.contains(address) ? model[address] : 'c';
        }
        model = next;
        leaf.update(list);
      } else {
        const std::string& address = all[chance(all.size())];
        const std::uint64_t kind = chance(3);
        if (kind == 0) leaf.idle(address);
        if (kind == 1) leaf.ready(address);
        if (kind == 2) leaf.fail(address);
        if (const auto it = model.find(address); it != model.end()) {
          if (kind == 0 && it->second == 'r') it->second = 'c';
          if (kind == 1) it->second = 'r';
          if (kind == 2) it->second = 'f';
        }
      }
      std::set<std::string> members;
      std::set<std::string> ready;
      bool connecting = false;
      for (const auto& [address, state] : model) {
        members.insert(address);
        if (state == 'r') ready.insert(address);
        connecting = connecting || state == 'c';
      }
      CHECK(leaf.held == members);
      CHECK(leaf.state() == (!ready.empty() ? kReady : connecting ? kConnecting : kFailed));

      leaf.step(RebuildDue{});
      if (ready.empty()) continue;
      std::set<std::string> picked;
      for (const auto& [address, count] : shares(leaf, 2 * static_cast<int>(ready.size()))) {
        CHECK(count == 2);
        picked.insert(address);
      }
      CHECK(picked == ready);
    }
  }
}

}  // namespace
}  // namespace signalbox::lb::round_robin_test
