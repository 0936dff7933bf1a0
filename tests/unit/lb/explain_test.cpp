// SPDX-License-Identifier: Apache-2.0
//
// Pickers' explanations of a call. An explanation changes nothing.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/request_limit.hpp"
#include "lb/tree/cluster_impl_picker.hpp"
#include "lb/tree/override_host_picker.hpp"
#include "tests/support/session_fixture.hpp"
#include "tests/support/session_tree.hpp"
#include "tests/support/step_log.hpp"

namespace signalbox::test {
namespace {

using Lines = std::vector<std::string>;
using testing::steps_of;

// The steps of one part.
Lines of_part(const Lines& lines, const std::string& part) {
  Lines found;
  for (const std::string& line : lines) {
    if (absl::StartsWith(line, part + ": ")) found.push_back(line);
  }
  return found;
}

// The explanation of a call to `cluster`.
Lines explained(const TreeHarness& tree, std::uint64_t seed = 0, const char* cluster = "orders") {
  const ClusterName name(cluster);
  PickArgs args;
  args.cluster = &name;
  args.seed = seed;
  return steps_of(tree.picker(), args, tree.now());
}

Lines visited(const TreeHarness& tree, const std::string& cookie, bool strict = false) {
  const ClusterName name("orders");
  const lb::SessionArgs session{.hosts = cookie, .strict = strict, .now = tree.now()};
  PickArgs args;
  args.cluster = &name;
  args.session = &session;
  return steps_of(tree.picker(), args, tree.now());
}

struct Tree {
  explicit Tree(const XdsWorld::Priorities& priorities,
                const LbConfigPtr& policy = default_lb_policy(),
                const ClusterExtras& extras = {}) {
    world.eds("orders", priorities, policy, extras);
    tree.apply(manager_of({"orders"}), world.config());
  }

  XdsWorld world;
  TreeHarness tree;
};

}  // namespace

TEST_CASE("explain: pickers that never complete say why", "[lb][explain]") {
  CHECK(steps_of(lb::make_queue_picker()) ==
        Lines{"picker: the call waits; no endpoint that could take it is READY yet"});
  CHECK(steps_of(lb::make_fail_picker(absl::UnavailableError("refused"))) ==
        Lines{"picker: the call fails, or waits if wait_for_ready; refused"});
  CHECK(steps_of(lb::make_drop_picker(absl::UnavailableError("gone"))) ==
        Lines{"picker: the call is dropped; gone"});

  struct Deaf final : AskTarget {
    void tell(const PickAsk& /*ask*/) const override {}
  };

  const PickerPtr asking = lb::make_ask_picker(std::make_shared<const Deaf>(), {});
  CHECK(steps_of(asking) ==
        Lines{"picker: the call waits; no endpoint is connected; a pick starts a connection; CDS"});
  CHECK(asking->pick({}).ask.has_value());  // The explanation has sent no ask.
}

TEST_CASE("explain: notes are told before their picker, and picks go past them", "[lb][explain]") {
  struct Note final : lb::PickNote {
    void tell(const PickArgs& /*args*/, PickTrace& trace) const override {
      trace.tell({"note", "why", "", "CDS"});
    }
  };

  const auto note = std::make_shared<const Note>();
  const PickerPtr inner = lb::make_fail_picker(absl::UnavailableError("x"));
  const PickerPtr told = lb::make_explained_picker(lb::make_explained_picker(inner, note), note);
  CHECK(lb::picked(told) == inner.get());
  CHECK(lb::picked(inner) == inner.get());
  CHECK(steps_of(told) == Lines{"note: why; CDS",
                                "note: why; CDS",
                                "picker: the call fails, or waits if wait_for_ready; x"});
  // A noted picker around a failure keeps the explanation, and adds its own text once.
  const PickerPtr noted = lb::make_noted_picker(told, "p: ");
  CHECK(steps_of(noted).back() == "picker: the call fails, or waits if wait_for_ready; p: x");
  CHECK(steps_of(noted).size() == 3);
  CHECK(to_text(noted->pick({})) == "fail UNAVAILABLE: p: x");
}

TEST_CASE("explain: below a cluster's picker sources have its names", "[lb][explain]") {
  testing::StepLog log;
  const std::string cluster = "orders";
  const std::string service = "orders-eds";
  const std::string none;
  lb::TimedTrace eds = lb::cluster_trace(log.trace, cluster, service);
  lb::TimedTrace dns = lb::cluster_trace(log.trace, cluster, none);
  for (PickTrace* trace : {&eds, &dns}) {
    for (const char* source : {"CDS", "EDS", "RDS r", ""})
      trace->tell({"part", "it", "", source});
  }
  CHECK(log.lines == Lines{"part: it; CDS orders",
                           "part: it; EDS orders-eds",
                           "part: it; RDS r",
                           "part: it",
                           "part: it; CDS orders",
                           "part: it; CDS orders",
                           "part: it; RDS r",
                           "part: it"});
}

TEST_CASE("explain: a trace of the program's own has no time, and turns stay as they are",
          "[lb][explain]") {
  struct Own final : PickTrace {
    void tell(PickStep /*step*/) override {}
  };

  const Own own;
  CHECK(lb::now_of(own) == std::nullopt);
  CHECK(lb::turns_of(own) == Turns::kAsTheyAre);
  const testing::StepLog log(Instant{} + 3s);
  CHECK(lb::now_of(log.trace) == Instant{} + 3s);
}

TEST_CASE("explain: durations, shares and endpoints in words", "[lb][explain]") {
  CHECK(lb::shown(3s) == "3 s");
  CHECK(lb::shown(1500ms) == "1.5 s");
  CHECK(lb::shown(1s) == "1 s");
  CHECK(lb::shown(20ms) == "20 ms");
  CHECK(lb::shown(0s) == "0 s");
  CHECK(lb::percent(1, 4) == "25 %");
  CHECK(lb::percent(1, 2'000) == "0.05 %");
  CHECK(lb::percent(0, 0) == "0 %");

  const auto connection = std::make_shared<const Connection>(Address("a"));
  Complete complete(connection.get());
  CHECK(lb::shown(Complete()) == "no connection");
  CHECK(lb::shown(complete) == "a");
  for (const LocalityName& name : {LocalityName{"north", "z", ""}, LocalityName()}) {
    const auto locality =
        std::make_shared<const Locality>(Locality{name, 1, {{.addresses = {Address("a")}}}});
    const ChosenEndpoint chosen{locality, &locality->endpoints.front(), nullptr};
    complete.endpoint = &chosen;
    const std::string text = name == LocalityName() ? "a" : "a in " + to_string(name);
    CHECK(lb::shown(complete) == text);
    CHECK(lb::shown(*chosen.endpoint, locality) == text);
    CHECK(lb::shown(*chosen.endpoint, nullptr) == "a");
  }
}

TEST_CASE("explain: round_robin says whose turn it is, and takes none", "[lb][explain]") {
  Tree world({":a,b"});
  world.tree.up("a");
  world.tree.up("b");
  const Lines first = of_part(explained(world.tree), "round_robin");
  REQUIRE(first.size() == 1);
  CHECK(of_part(explained(world.tree), "round_robin") == first);
  const std::string picked = world.tree.pick("orders");
  CHECK(absl::StartsWith(first[0], "round_robin: " + picked.substr(picked.size() - 1) + "; "));
  const char* const turn =
      picked.back() == 'a' ? "; its turn: 1 of 2 that" : "; its turn: 2 of 2 that";
  CHECK(absl::StrContains(first[0], turn));
  CHECK(absl::EndsWith(first[0], "; CDS orders"));
  // The pick took a turn, so the next turn is the other endpoint's.
  CHECK(of_part(explained(world.tree), "round_robin") != first);
}

TEST_CASE("explain: who is not READY is told, and why", "[lb][explain]") {
  Tree world({":a,b,c"});
  world.tree.up("a");
  world.tree.down("b");
  const Lines lines = of_part(explained(world.tree), "round_robin");
  REQUIRE(lines.size() >= 2);
  CHECK(absl::StrContains(lines[0], "not b"));
  CHECK(absl::EndsWith(lines[0], "; EDS orders"));
  CHECK(lines[1] == "round_robin: not c; CONNECTING; EDS orders");
  CHECK(absl::StartsWith(lines.back(), "round_robin: a; "));

  world.tree.down("a");
  world.tree.down("c");
  const Lines failed = explained(world.tree);
  CHECK(of_part(failed, "round_robin").size() == 3);
  CHECK(of_part(failed, "round_robin")[0] ==
        "round_robin: not a; TRANSIENT_FAILURE: a: refused; EDS orders");
}

TEST_CASE("explain: of very many that are not READY only some are named", "[lb][explain]") {
  std::string endpoints = ":a0";
  for (int i = 1; i < 30; ++i)
    absl::StrAppend(&endpoints, ",a", i);
  Tree world({endpoints});
  world.tree.up("a0");
  const Lines lines = of_part(explained(world.tree), "round_robin");
  REQUIRE(lines.size() == 22);
  CHECK(lines[20] == "round_robin: nor 9 others; they are not READY either; EDS orders");
}

TEST_CASE("explain: priorities that failed, and the window of the one that is tried",
          "[lb][explain][A56]") {
  Tree world({":a", ":b", ":c"});
  const ClusterName orders("orders");
  Lines timeless;
  lb::TimedTrace trace(std::nullopt,
                       [&](const PickStep& step) { timeless.push_back(testing::to_line(step)); });
  world.tree.picker()->explain({.cluster = &orders}, trace);
  CHECK(of_part(timeless, "priority") ==
        Lines{"priority: priority 0 of 3; CONNECTING; its failover window is open; runtime option "
              "failover_timeout"});
  CHECK(of_part(explained(world.tree), "priority") ==
        Lines{"priority: priority 0 of 3; CONNECTING; its failover window runs for 10 s more; "
              "runtime option failover_timeout"});
  world.tree.advance(4s);
  CHECK(absl::StrContains(of_part(explained(world.tree), "priority").at(0), "runs for 6 s more"));
  world.tree.down("a");
  const Lines tried = of_part(explained(world.tree), "priority");
  REQUIRE(tried.size() == 2);
  CHECK(absl::StartsWith(tried[0], "priority: not priority 0 of 3; TRANSIENT_FAILURE: "));
  CHECK(absl::EndsWith(tried[0], "; EDS orders"));
  CHECK(tried[1] ==
        "priority: priority 1 of 3; CONNECTING; its failover window runs for 10 s more; "
        "runtime option failover_timeout");
  world.tree.advance(11s);
  CHECK(of_part(explained(world.tree), "priority").at(1) ==
        "priority: not priority 1 of 3; CONNECTING; its failover window is over; EDS orders");
  world.tree.up("c");
  CHECK(of_part(explained(world.tree), "priority").at(2) ==
        "priority: priority 2 of 3; READY; EDS orders");
  // Priority 0 is back, so calls return to it.
  world.tree.up("a");
  CHECK(of_part(explained(world.tree), "priority") ==
        Lines{"priority: priority 0 of 3; READY; EDS orders"});
}

TEST_CASE("explain: an aggregate's priorities are its clusters", "[lb][explain][A75]") {
  XdsWorld xds;
  xds.eds("near", {":a"});
  xds.eds("far", {":b"});
  xds.aggregate("orders", {"near", "far"});
  TreeHarness tree;
  tree.apply(manager_of({"orders"}), xds.config());
  tree.down("a");
  tree.up("b");
  const Lines lines = explained(tree);
  const Lines chosen = of_part(lines, "priority");
  REQUIRE(chosen.size() == 2);
  CHECK(absl::StartsWith(chosen[0],
                         "priority: not priority 0 of 2: cluster near; TRANSIENT_FAILURE: "));
  CHECK(absl::EndsWith(chosen[0], "; CDS orders"));
  CHECK(chosen[1] == "priority: priority 1 of 2: cluster far; READY; CDS orders");
  CHECK(absl::EndsWith(lines.back(), "; CDS far"));
}

TEST_CASE("explain: localities are drawn by weight, and those that failed are named",
          "[lb][explain]") {
  Tree world({"x*1:a y*3:b z*2:c"});
  world.tree.up("a");
  world.tree.up("b");
  world.tree.down("c");
  const Lines lines = of_part(explained(world.tree), "weighted_target");
  REQUIRE(lines.size() == 2);
  CHECK(absl::StrContains(lines[0], "not locality {region=\"\", zone=\"z\""));
  CHECK(absl::StrContains(lines[0], "; TRANSIENT_FAILURE: "));
  CHECK(absl::StrContains(lines[1], "drew "));
  const bool is_x = absl::StrContains(lines[1], "zone=\"x\"");
  CHECK(absl::StrContains(
      lines[1], is_x ? " of 4; its weight is 1, from 0;" : " of 4; its weight is 3, from 1;"));
  CHECK(absl::EndsWith(lines[1], "; EDS orders"));
  world.tree.down("a");
  CHECK(absl::StrContains(of_part(explained(world.tree), "weighted_target").back(),
                          "; the only one that can take calls; EDS orders"));
  Tree weightless({"x*0:a y*1:b"});
  weightless.tree.up("a");
  weightless.tree.up("b");
  const Lines without_x = of_part(explained(weightless.tree), "weighted_target");
  REQUIRE(without_x.size() == 2);
  CHECK(absl::StrContains(without_x[0], "not locality {region=\"\", zone=\"x\""));
  CHECK(absl::EndsWith(without_x[0], "; its weight is 0; EDS orders"));
}

TEST_CASE("explain: drops are drawn one by one, and none is counted", "[lb][explain][A37-27]") {
  ClusterExtras extras;
  extras.drops = {{"some", 0}, {"half", 500'000}, {"all", 1'000'000}};
  Tree world({":a"}, default_lb_policy(), extras);
  world.tree.up("a");
  const Lines lines = explained(world.tree, 3);
  const bool by_half = world.tree.pick("orders", 3).find("half") != std::string::npos;
  REQUIRE(lines.size() == (by_half ? 1 : 2));
  CHECK(absl::StartsWith(lines.back(),
                         by_half ? "cluster_impl: dropped by category \"half\"; drew "
                                 : "cluster_impl: dropped by category \"all\"; drew "));
  CHECK(absl::EndsWith(lines.back(), "; EDS orders"));
}

TEST_CASE("explain: the circuit breaker says how many calls there are", "[lb][explain][A32]") {
  ClusterExtras extras;
  extras.max_concurrent_requests = 1;
  Tree world({":a"}, default_lb_policy(), extras);
  world.tree.up("a");
  const std::string free =
      "cluster_impl: the circuit breaker lets it in; 0 calls in flight of 1 at most; CDS orders";
  CHECK(explained(world.tree).back() == free);
  // The explanation did not count as a call in flight.
  CHECK(explained(world.tree).back() == free);
  TreeHarness::Call running = world.tree.begin("orders");
  CHECK(explained(world.tree).back() ==
        "cluster_impl: dropped by the circuit breaker; 1 calls in flight of 1 at most; "
        "CDS orders");
  TreeHarness::end(running);
  CHECK(explained(world.tree).back() == free);
}

namespace {

ClusterExtras ejecting(std::uint32_t minimum_hosts, Duration base_ejection_time = 30s) {
  ClusterExtras extras;
  extras.outlier_detection.emplace();
  OutlierDetection& settings = *extras.outlier_detection;
  settings.interval = 10s;
  settings.base_ejection_time = base_ejection_time;
  settings.failure_percentage = OutlierDetection::FailurePercentage{};
  settings.failure_percentage->minimum_hosts = minimum_hosts;
  settings.failure_percentage->request_volume = 1;
  settings.failure_percentage->enforcement_percent = 100;
  return extras;
}

}  // namespace

TEST_CASE("explain: who is set aside, for how long, and why", "[lb][explain][A50]") {
  Tree world({":a,b"}, default_lb_policy(), ejecting(2));
  world.tree.up("a");
  world.tree.up("b");
  CHECK(of_part(explained(world.tree), "outlier_detection") ==
        Lines{"outlier_detection: no endpoint is ejected; CDS orders"});
  world.tree.answer_badly("b");
  for (int i = 0; i < 10; ++i)
    world.tree.call("orders");
  world.tree.advance(12s);
  const Lines lines = explained(world.tree);
  const Lines ejected = of_part(lines, "outlier_detection");
  REQUIRE(ejected.size() == 1);
  CHECK(absl::StartsWith(ejected[0], "outlier_detection: set aside: b; "));
  CHECK(absl::StrContains(ejected[0], "; for 2 s, and 28 s more; CDS orders"));
  CHECK(absl::StartsWith(of_part(lines, "round_robin").at(0), "round_robin: not b; "));

  // The same settings but for a longer ejection.
  world.world.eds("orders", {":a,b"}, default_lb_policy(), ejecting(2, 60s));
  world.tree.apply(manager_of({"orders"}), world.world.config());
  CHECK(absl::StrContains(of_part(explained(world.tree), "outlier_detection").at(0),
                          "; for 2 s, and 58 s more; CDS orders"));
}

TEST_CASE("explain: an ejection is told also where pick_first pays no attention to it",
          "[lb][explain][A50][A61]") {
  const Lines none{"outlier_detection: no endpoint is ejected; CDS orders"};
  const std::string ejected =
      "outlier_detection: set aside: a; ejected by outlier detection (failure percentage)";
  Tree world({":a,b"}, make_lb_config(PickFirstConfig{}), ejecting(1));
  world.tree.up("a");
  world.tree.up("b");
  world.tree.answer_badly("a");
  world.tree.call("orders");
  CHECK(of_part(explained(world.tree), "outlier_detection") == none);
  SECTION("because it goes on with the endpoint") {}
  SECTION("because it has left the endpoint") {
    world.tree.down("a");
    world.tree.call("orders");
  }
  // The sweep at 10 s ejects a, and the sweep at 20 s changes nothing. A sweep in the next 40 s
  // ends the ejection.
  world.tree.advance(22s);
  CHECK(of_part(explained(world.tree), "outlier_detection") ==
        Lines{ejected + "; for 12 s, and 18 s more; CDS orders"});
  world.tree.advance(40s);
  CHECK(of_part(explained(world.tree), "outlier_detection") == none);
}

TEST_CASE("explain: where nothing runs, a turn is drawn by the seed", "[lb][explain]") {
  const bool is_weighted = GENERATE(false, true);
  const std::string part = is_weighted ? "weighted_round_robin" : "round_robin";
  Tree world({":a,b,c"},
             is_weighted ? make_lb_config(WeightedRoundRobinConfig{}) : default_lb_policy());
  for (const char* address : {"a", "b", "c"})
    world.tree.up(address);
  const auto told = [&](std::uint64_t seed) {
    Lines lines;
    lb::TimedTrace trace(
        Instant(),
        [&](const PickStep& step) { lines.push_back(testing::to_line(step)); },
        Turns::kBySeed);
    const ClusterName cluster("orders");
    const PickResult result =
        world.tree.picker()->explain({.cluster = &cluster, .seed = seed}, trace);
    const std::string line = of_part(lines, part).back();
    const std::string chosen = std::get<Complete>(result.outcome).connection->address().str();
    CHECK(absl::StartsWith(line, absl::StrCat(part, ": ", chosen, "; ")));
    const std::string drawn =
        absl::StrCat("; drawn by the seed: ", chosen[0] - 'a' + 1, " of 3 that are READY; ");
    CHECK(absl::StrContains(line, drawn) == !is_weighted);
    return line;
  };
  std::set<std::string> all;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::string first = told(seed);
    world.tree.call("orders");  // The call takes a turn of round_robin.
    CHECK(told(seed) == first);
    all.insert(first);
  }
  CHECK(all.size() == 3);
}

TEST_CASE("explain: each host of a cookie has its verdict", "[lb][explain][A75]") {
  SessionTree world;
  world.apply({":a,b,c,d!"});
  world.tree.up("a");
  world.tree.down("b");
  const Lines lines = of_part(visited(world.tree, "b,c,x,d,a"), "override_host");
  REQUIRE(lines.size() == 6);
  CHECK(absl::StartsWith(lines[0], "override_host: cookie's host b: not taken; "));
  CHECK(lines[1] ==
        "override_host: cookie's host c: waited for, if no other is READY; it is CONNECTING, its "
        "health is UNKNOWN; CDS orders");
  // The explanation does not tell an address that no endpoint has: the cookie may have been
  // sealed.
  CHECK(lines[2] ==
        "override_host: cookie's host: not taken; no endpoint of the cluster has this address; "
        "CDS orders");
  CHECK(absl::StrContains(lines[3], "cookie's host"));
  CHECK(lines[4] ==
        "override_host: cookie's host a: taken; it is READY, its health is UNKNOWN; CDS orders");
  CHECK(lines[5] == "override_host: the session stays; its host takes the call; CDS orders");
  CHECK(of_part(visited(world.tree, "c"), "override_host").back() ==
        "override_host: the call waits; its host is being connected; CDS orders");
  CHECK(of_part(visited(world.tree, "x"), "override_host").back() ==
        "override_host: the session moves; no host of its cookie can be used, and it is not "
        "strict; CDS orders");
  CHECK(of_part(visited(world.tree, "x", true), "override_host").back() ==
        "override_host: the call is dropped; no host of its cookie can be used, and it is strict; "
        "CDS orders");
  CHECK(of_part(visited(world.tree, ""), "override_host").back() ==
        "override_host: a session begins; the call has no cookie that names a host; CDS orders");
  CHECK(of_part(explained(world.tree), "override_host").empty());
}

TEST_CASE("explain: why a strict session fails is a sentence", "[lb][explain][A55-43]") {
  SessionTree world;
  world.apply({":a"});
  world.tree.up("a");
  const ClusterName name("orders");
  const lb::SessionArgs session{.hosts = "x,y", .strict = true, .now = world.tree.now()};
  testing::StepLog log;
  const PickResult told =
      world.tree.picker()->explain({.cluster = &name, .session = &session}, log.trace);
  // The error does not contain the cookie's address if no endpoint has it: the address may be a
  // secret, because cookies can be encrypted.
  CHECK(std::get<Drop>(told.outcome).status.message() ==
        "the session is strict, and the host of its cookie cannot be used: no endpoint of the "
        "cluster has this address");
}

TEST_CASE("explain: a session's host is not marked as used, and not asked for", "[lb][explain]") {
  struct Asks final : AskTarget {
    void tell(const PickAsk& /*ask*/) const override {}
  };

  Locality locality;
  for (const char* address : {"a", "b"})
    locality.endpoints.push_back({.addresses = {Address(address)}});
  Endpoints endpoints;
  endpoints.priorities.push_back({{std::make_shared<const Locality>(locality)}});
  const auto table =
      std::make_shared<const lb::HostTable>(std::make_shared<const Endpoints>(endpoints),
                                            HealthStatusSet{HealthStatus::kUnknown},
                                            nullptr);
  lb::HostStates states(2);
  states[0] = SubchannelStateChanged{.address = Address("a"), .status = absl::OkStatus()};
  states[0]->state = kReady;
  states[0]->connection = std::make_shared<const Connection>(Address("a"));
  const auto child = lb::make_connection_picker(states[0]->connection);
  const auto picker = lb::make_override_host_picker(
      child, lb::make_host_slots(table, states), std::make_shared<const Asks>());
  const auto used = [&] { return (*table)[0].mark->used_after(Instant()); };
  const auto args_of = [](const lb::SessionArgs& session) {
    PickArgs args;
    args.session = &session;
    return args;
  };
  const lb::SessionArgs on_host{.hosts = "a", .now = Instant(1s)};
  const lb::SessionArgs unheld{.hosts = "b", .now = Instant(1s)};
  const lb::SessionArgs fresh{.hosts = "", .now = Instant(1s)};
  for (const lb::SessionArgs* session : {&on_host, &fresh}) {
    CHECK_FALSE(steps_of(picker, args_of(*session)).empty());
    CHECK_FALSE(used());
  }
  testing::StepLog log;
  CHECK_FALSE(picker->explain(args_of(unheld), log.trace).ask);
  CHECK(picker->pick(args_of(unheld)).ask);
  // A cookie may be sealed. So an address that only the cookie has is a secret, which the errors of
  // a pick and of an explanation do not contain.
  const lb::SessionArgs strict{.hosts = "secret:1", .strict = true, .now = Instant(1s)};
  const auto refused_with = [](const PickResult& result) {
    return std::string(std::get<Drop>(result.outcome).status.message());
  };
  CHECK_FALSE(absl::StrContains(refused_with(picker->pick(args_of(strict))), "secret"));
  CHECK_FALSE(
      absl::StrContains(refused_with(picker->explain(args_of(strict), log.trace)), "secret"));
  picker->pick(args_of(on_host));
  CHECK(used());
}

TEST_CASE("explain: least_request says whom it drew, and how many calls they have",
          "[lb][explain]") {
  Tree world({":a,b,c"}, make_lb_config(WrrLocalityConfig{make_lb_config(LeastRequestConfig{})}));
  for (const char* address : {"a", "b", "c"})
    world.tree.up(address);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Lines lines = of_part(explained(world.tree, seed), "least_request");
    REQUIRE(lines.size() >= 2);
    CHECK(absl::StartsWith(lines[0], "least_request: drew "));
    CHECK(absl::StrContains(lines[0], "; 0 calls of this policy's in flight; CDS orders"));
    const std::string picked = world.tree.pick("orders", seed);
    CHECK(lines.back() == "least_request: " + picked.substr(picked.size() - 1) +
                              "; the fewest calls of the 2 drawn from 3 that are READY; CDS "
                              "orders");
  }
}

TEST_CASE("explain: ring_hash says where a call belongs, and asks for nobody", "[lb][explain]") {
  Tree world({":a,b"}, make_lb_config(RingHashConfig{}));
  const ClusterName orders("orders");
  PickArgs args;
  args.cluster = &orders;
  args.hash = 42;
  Lines lines = of_part(steps_of(world.tree.picker(), args), "ring_hash");
  CHECK(lines.at(2) ==
        "ring_hash: walks the ring; the call's hash is 42, by the hash policies of its route; the "
        "ring has 1024 points; CDS orders");
  CHECK(absl::StrContains(lines.at(3), "is where it belongs, and not connected"));
  world.tree.settle();
  CHECK(world.tree.connected().empty());
  // The explanation asked for no connection. The first pick does.
  CHECK(world.tree.pick("orders", 0, 42) == "queue");
  for (const char* address : {"a", "b"})
    world.tree.up(address);
  const std::string picked = world.tree.pick("orders", 0, 42);
  lines = of_part(steps_of(world.tree.picker(), args), "ring_hash");
  CHECK(lines.back() == "ring_hash: " + picked.substr(picked.size() - 1) +
                            "; the first READY one from there; 0 points of failed ones were "
                            "passed; CDS orders");
}

TEST_CASE("explain: pick_first stays where it is", "[lb][explain]") {
  Tree world({":a,b"}, make_lb_config(PickFirstConfig{}));
  world.tree.up("a");
  CHECK(explained(world.tree).at(0) ==
        "pick_first: a; pick_first stays on the first address that it could connect to; CDS "
        "orders");
}

TEST_CASE("explain: a cluster that is not there, and one that retires", "[lb][explain]") {
  XdsWorld xds;
  xds.eds("orders", {":a"});
  TreeHarness tree;
  tree.apply(manager_of({}, {"orders"}), xds.config());
  CHECK(explained(tree).at(0) ==
        "cluster_manager: cluster orders is retiring; no route names it any more; only calls that "
        "chose it before still may use it");
  CHECK(explained(tree, 0, "nowhere").empty());
}

}  // namespace signalbox::test
