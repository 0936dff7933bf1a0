// SPDX-License-Identifier: Apache-2.0
//
// Envoy's aggregate cluster with the real policies: the share of calls that each tier gets, which
// tiers are connected, sessions, and settings. env_priority_load_test has the arithmetic.
#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/session/session_args.hpp"
#include "lb/session/session_cookie.hpp"
#include "tests/support/child_policies.hpp"
#include "tests/support/dependency_world.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/tiered_tree.hpp"
#include "tests/support/tree_drawing.hpp"

namespace signalbox::test {
namespace {

using Hosts = TieredTree::Hosts;
using Names = std::vector<std::string>;
using Shares = std::map<std::string, int>;

const Hosts kHealthy{2, 0, 0};
const Hosts kUnhealthy{0, 0, 2};

std::vector<Hosts> percents(const std::vector<int>& healthy) {
  std::vector<Hosts> hosts;
  for (const int percent : healthy)
    hosts.push_back(TieredTree::percent(percent));
  return hosts;
}

}  // namespace

// --- the order of the clusters, and the settings of each ---

SCENARIO("ENV: an aggregate's clusters are tried in the order of its list",
         "[spec][tiered][ENV-2]") {
  TieredTree orders;
  for (const char* leaf : {"one", "two", "three"})
    orders.leaf(leaf, {kHealthy});
  orders.apply({"two", "one", "three"});
  CHECK(orders.shares() == Shares{{"two/0", 100}});
  orders.leaf("two", {kUnhealthy});
  orders.apply();
  CHECK(orders.shares() == Shares{{"one/0", 100}});
  WHEN("the list is turned round") {
    orders.apply({"three", "one", "two"});
    CHECK(orders.shares() == Shares{{"three/0", 100}});
  }
}

SCENARIO("ENV: each cluster keeps its own kind, policy and settings; a tier stands for a priority",
         "[spec][tiered][ENV-3][ENV-4][ENV-21]") {
  TieredTree orders;
  orders.leaf("primary", {{1, 0, 2}, {2, 1, 0}});
  orders.leaf("secondary", {kHealthy}, make_lb_config(PickFirstConfig{}));
  orders.world.dns("legacy", "legacy/0.0");
  orders.tree.up("legacy/0.0");
  orders.apply({"primary", "secondary", "legacy"});
  // Primary's first priority takes 46 % of the calls (1/3 × 140 %), and the next takes the others.
  CHECK(orders.shares() == Shares{{"primary/0", 46}, {"primary/1", 54}});
  CHECK("\n" + draw_tree(orders.tree.policies("m")) == R"(
cluster_manager
└ orders: cds
  └ tiered
    ├ legacy: cds
    │ └ outlier_detection
    │   └ cluster_impl
    │     └ override_host
    │       └ leaf_tiers
    ├ primary: cds
    │ └ outlier_detection
    │   └ cluster_impl
    │     └ override_host
    │       └ leaf_tiers
    │         ├ child0: wrr_locality
    │         │ └ weighted_target
    │         │   └ z0: round_robin
    │         └ child1: wrr_locality
    │           └ weighted_target
    │             └ z1: round_robin
    └ secondary: cds
      └ outlier_detection
        └ cluster_impl
          └ override_host
            └ leaf_tiers
)");
  WHEN("the first cluster is not there any more") {
    orders.leaf("primary", {kUnhealthy});
    orders.apply();
    THEN("the second takes the calls, by its own policy") {
      CHECK(orders.tree.reached("orders").size() == 1);
      CHECK(orders.shares() == Shares{{"secondary/0", 100}});
    }
  }
  WHEN("the second is not there either") {
    orders.leaf("primary", {kUnhealthy});
    orders.leaf("secondary", {kUnhealthy});
    orders.apply();
    THEN("the last takes them, whose endpoints a name has") {
      CHECK(orders.shares() == Shares{{"legacy/0", 100}});
    }
  }
}

SCENARIO("ENV: what a call drew is cluster and priority; its host is one of these",
         "[spec][tiered][ENV-4]") {
  TieredTree orders;
  orders.leaf("primary", {{1, 0, 3}, {1, 0, 3}});
  orders.leaf("secondary", {{2, 0, 2}});
  orders.apply({"primary", "secondary"});
  CHECK(orders.shares() == Shares{{"primary/0", 35}, {"primary/1", 35}, {"secondary/0", 30}});
  // A tier spreads its calls over all of its healthy hosts. Equal draws lead to the same tier.
  CHECK(orders.tree.reached("orders") ==
        Names{"primary/0.0", "primary/1.0", "secondary/0.0", "secondary/0.1"});
  for (const std::uint64_t seed : seeds_of_all_draws()) {
    const std::string first = orders.tree.pick("orders", seed);
    const std::string again = orders.tree.pick("orders", seed);
    CHECK(first.substr(0, first.find('.')) == again.substr(0, again.find('.')));
  }
}

// --- the row of all priorities ---

SCENARIO("ENV: the priorities of all clusters stand in one row", "[spec][tiered][ENV-5]") {
  const std::vector<std::pair<std::string, std::size_t>> row{{"primary", 0},
                                                             {"primary", 1},
                                                             {"primary", 2},
                                                             {"secondary", 0},
                                                             {"secondary", 1},
                                                             {"tertiary", 0},
                                                             {"tertiary", 1}};
  const auto tier = [&](std::size_t at) {
    return absl::StrCat(row[at].first, "/", row[at].second);
  };
  for (std::size_t first = 0; first < row.size(); ++first) {
    INFO("healthy from " << first << " on, the first of them half");
    TieredTree orders;
    std::map<std::string, std::vector<Hosts>> leaves;
    for (std::size_t at = 0; at < row.size(); ++at)
      leaves[row[at].first].push_back(at < first    ? kUnhealthy
                                      : at == first ? Hosts{1, 0, 1}
                                                    : kHealthy);
    for (const auto& [leaf, priorities] : leaves)
      orders.leaf(leaf, priorities);
    orders.apply({"primary", "secondary", "tertiary"});
    Shares wanted{{tier(first), first + 1 < row.size() ? 70 : 100}};
    if (first + 1 < row.size()) wanted[tier(first + 1)] = 30;
    CHECK(orders.shares() == wanted);
  }
}

SCENARIO("ENV: priorities without hosts, and clusters that are not there, are skipped",
         "[spec][tiered][ENV-6][ENV-9]") {
  TieredTree orders;
  orders.leaf("primary", {{}, {1, 0, 1}, {}});
  orders.leaf("secondary", {kHealthy});
  orders.world.eds_unresolved("warming", "EDS: nothing yet");
  orders.world.error("broken", absl::UnavailableError("CDS: refused"));
  orders.apply({"missing", "warming", "broken", "primary", "secondary"});
  CHECK(orders.shares() == Shares{{"primary/1", 70}, {"secondary/0", 30}});
  WHEN("one of them comes, it has its place in the row") {
    orders.leaf("broken", {{1, 0, 3}});
    orders.apply();
    CHECK(orders.shares() == Shares{{"broken/0", 35}, {"primary/1", 65}});
  }
  WHEN("a cluster goes") {
    orders.world.remove("primary");
    orders.apply();
    CHECK(orders.shares() == Shares{{"secondary/0", 100}});
  }
}

SCENARIO("ENV: an aggregate inside an aggregate is flattened: its leaves have its place in the row",
         "[spec][tiered][ENV-32][A37-7]") {
  GIVEN("orders of nested and third, nested of first and second; half of first is healthy") {
    tests::DependencyWorld world;
    TieredTree orders;
    const auto set_leaf = [&](const std::string& name, bool has_healthy, bool has_unhealthy) {
      const auto locality_of = [&](int number, HealthStatus health) {
        Locality made;
        made.endpoints.push_back(
            {.addresses = {Address(TieredTree::host(name, 0, number))}, .health = health});
        orders.tree.up(made.endpoints.front().addresses.front().str());
        return std::make_shared<const Locality>(std::move(made));
      };
      Priority priority;
      if (has_healthy) priority.localities.push_back(locality_of(0, HealthStatus::kHealthy));
      if (has_unhealthy) priority.unhealthy.push_back(locality_of(1, HealthStatus::kUnhealthy));
      Endpoints made;
      made.priorities.push_back(std::move(priority));
      world.set(tests::cds(name), tests::eds_cluster(name, name));
      world.set(tests::eds(name), std::make_shared<const Endpoints>(std::move(made)));
    };
    const auto apply = [&] { orders.tree.apply(manager_of({"orders"}), world.config); };
    world.route_to({"orders"});
    world.set(tests::cds("orders"), tests::aggregate("orders", {"nested", "third"}));
    world.set(tests::cds("nested"), tests::aggregate("nested", {"first", "second"}));
    set_leaf("first", true, true);
    set_leaf("second", true, false);
    set_leaf("third", true, false);
    apply();
    THEN("what first cannot take goes to second, where Envoy passes over both") {
      CHECK(orders.shares() == Shares{{"first/0", 70}, {"second/0", 30}});
    }
    WHEN("no leaf of nested has a healthy host") {
      set_leaf("first", false, true);
      set_leaf("second", false, true);
      apply();
      THEN("third has all calls") {
        CHECK(orders.shares() == Shares{{"third/0", 100}});
      }
    }
  }
}

// --- scores and loads ---

namespace {

struct Row {
  int number;
  std::vector<int> primary;
  std::vector<int> secondary;
  Shares shares;
};

const Row kTable[] = {
    {1, {100, 100, 100}, {100, 100}, {{"primary/0", 100}}},
    {2, {72, 100, 100}, {100, 100}, {{"primary/0", 100}}},
    {3, {71, 1, 0}, {100, 100}, {{"primary/0", 99}, {"primary/1", 1}}},
    {4, {71, 0, 0}, {100, 100}, {{"primary/0", 99}, {"secondary/0", 1}}},
    {5, {50, 0, 0}, {50, 0}, {{"primary/0", 70}, {"secondary/0", 30}}},
    {6,
     {20, 20, 10},
     {25, 25},
     {{"primary/0", 28}, {"primary/1", 28}, {"primary/2", 14}, {"secondary/0", 30}}},
    {7, {20, 0, 0}, {20, 0}, {{"primary/0", 50}, {"secondary/0", 50}}},
    {8, {0, 0, 0}, {100, 0}, {{"secondary/0", 100}}},
    {9, {0, 0, 0}, {72, 0}, {{"secondary/0", 100}}},
};

}  // namespace

SCENARIO("ENV: the document's table, to the call", "[spec][tiered][ENV-8][ENV-14][ENV-22]") {
  for (const Row& row : kTable) {
    INFO("row " << row.number);
    TieredTree orders;
    orders.leaf("primary", percents(row.primary));
    orders.leaf("secondary", percents(row.secondary));
    orders.apply({"primary", "secondary"});
    CHECK(orders.shares() == row.shares);
  }
}

SCENARIO("ENV: the same table where the others cannot be connected to",
         "[spec][tiered][ENV-22][ENV-24]") {
  for (const Row& row : kTable) {
    INFO("row " << row.number);
    TieredTree orders;
    const auto leaf = [&](const std::string& name, const std::vector<int>& healthy) {
      for (std::size_t at = 0; at < healthy.size(); ++at) {
        for (int number = healthy[at]; number < 100; ++number)
          orders.down(TieredTree::host(name, at, number));
      }
      orders.leaf(name, std::vector<Hosts>(healthy.size(), Hosts{100, 0, 0}));
    };
    leaf("primary", row.primary);
    leaf("secondary", row.secondary);
    orders.apply({"primary", "secondary"});
    CHECK(orders.shares() == row.shares);
  }
}

SCENARIO("ENV: EDS may say how far a priority can shrink, and that weights count",
         "[spec][tiered][ENV-7][ENV-9]") {
  TieredTree orders;
  orders.leaf("secondary", {kHealthy});
  ClusterExtras extras;
  extras.overprovisioning_percent = 100;
  orders.leaf("primary", {{1, 0, 1}}, default_lb_policy(), extras);
  orders.apply({"primary", "secondary"});
  CHECK(orders.shares() == Shares{{"primary/0", 50}, {"secondary/0", 50}});
  extras.overprovisioning_percent = 140;
  extras.weighted_priority_health = true;
  orders.world.eds("primary", {"z0:primary/0.0=3,primary/0.1=7-"}, default_lb_policy(), extras);
  orders.apply();
  CHECK(orders.shares() == Shares{{"primary/0", 42}, {"secondary/0", 58}});
}

SCENARIO("ENV: degraded hosts have what healthy ones leave; the rest of rounding goes to the first",
         "[spec][tiered][ENV-10][ENV-15][ENV-16]") {
  TieredTree orders;
  orders.leaf("primary", {{10, 20, 70}, {20, 10, 70}, {10, 0, 90}});
  orders.apply({"primary"});
  CHECK(orders.shares() ==
        Shares{{"primary/0", 16 + 28}, {"primary/1", 28 + 14}, {"primary/2", 14}});
  std::map<std::string, int> by_health;
  for (const std::uint64_t seed : seeds_of_all_draws()) {
    const std::string answer = orders.tree.pick("orders", seed);
    const int number = std::stoi(answer.substr(answer.find('.') + 1));
    const bool is_second = answer.find("/1.") != std::string::npos;
    ++by_health[number < (is_second ? 20 : 10) ? "healthy" : "degraded"];
    CHECK(number < 30);
  }
  CHECK(by_health == std::map<std::string, int>{{"healthy", 58}, {"degraded", 42}});
  // Draws 0 to 57 belong to the healthy tiers, the later draws to the degraded tiers (ENV-18).
  CHECK(orders.tree.pick("orders", seeds_of_all_draws()[57]).starts_with("complete primary/2."));
  const std::string next = orders.tree.pick("orders", seeds_of_all_draws()[58]);
  REQUIRE(next.starts_with("complete primary/0."));
  CHECK(std::stoi(next.substr(next.find('.') + 1)) >= 10);
  WHEN("the healthy ones suffice") {
    orders.leaf("primary", {{72, 28, 0}});
    orders.apply();
    THEN("the degraded ones have nothing, and nobody connects to them") {
      for (const std::string& address : orders.tree.reached("orders"))
        CHECK(std::stoi(address.substr(address.find('.') + 1)) < 72);
      orders.tree.advance(std::chrono::minutes(16));
      CHECK(orders.tree.policies("m/orders/child/primary").size() == 8);
    }
  }
}

// --- no host is fit ---

SCENARIO("ENV: where nobody is fit calls fail, and say who is not", "[spec][tiered][ENV-17]") {
  TieredTree orders;
  orders.leaf("primary", {kUnhealthy, kUnhealthy});
  orders.leaf("secondary", {{1, 0, 2}});
  orders.down("secondary/0.0");
  orders.world.error("legacy", absl::UnavailableError("CDS: refused"));
  orders.apply({"primary", "secondary", "legacy"});
  const Shares shares = orders.shares();
  REQUIRE(shares.size() == 1);
  const std::string& text = shares.begin()->first;
  INFO(text);
  CHECK(text.starts_with(
      "fail UNAVAILABLE: no endpoint is healthy: primary 0 of 4, secondary 0 of 3 ("));
  CHECK(text.find("refused), legacy (CDS: refused)") != std::string::npos);
  CHECK(orders.tree.state("m/orders") == kFailure);
  WHEN("one comes back") {
    orders.tree.up("secondary/0.0");
    CHECK(orders.shares() == Shares{{"secondary/0", 100}});
    CHECK(orders.tree.state("m/orders") == kReady);
  }
}

SCENARIO("ENV: in panic, where it is configured, calls go by numbers of hosts, to whoever is there",
         "[spec][tiered][ENV-17]") {
  lb::PolicyOptions options;
  options.panic_threshold = 50;
  TieredTree orders(options);
  orders.leaf("primary", {{0, 0, 3}});
  orders.leaf("secondary", {{0, 0, 1}});
  orders.apply({"primary", "secondary"});
  CHECK(orders.shares() == Shares{{"primary/0", 75}, {"secondary/0", 25}});
  CHECK(orders.tree.reached("orders").size() == 4);
  WHEN("one priority only is below the threshold, and all together are below 100") {
    orders.leaf("primary", {{1, 0, 7}});
    orders.leaf("secondary", {{1, 0, 1}});
    orders.apply();
    THEN("its calls go to all of its hosts, those of the other to who is healthy") {
      CHECK(orders.shares() == Shares{{"primary/0", 20}, {"secondary/0", 80}});
      const Names reached = orders.tree.reached("orders");
      CHECK(reached.size() == 9);
      CHECK(reached.back() == "secondary/0.0");
    }
  }
  WHEN("health goes by weights") {
    ClusterExtras extras;
    extras.weighted_priority_health = true;
    orders.world.eds("primary",
                     {"z0:primary/0.0=90-,primary/0.1=90-,primary/0.2=90-"},
                     default_lb_policy(),
                     extras);
    orders.apply();
    THEN("numbers count all the same") {
      CHECK(orders.shares() == Shares{{"primary/0", 75}, {"secondary/0", 25}});
    }
  }
  WHEN("they are well again") {
    orders.leaf("primary", {{3, 0, 0}});
    orders.apply();
    CHECK(orders.shares() == Shares{{"primary/0", 100}});
  }
}

SCENARIO("ENV: where every priority panics calls go by health, as Envoy's document says",
         "[spec][tiered][ENV-33]") {
  lb::PolicyOptions options;
  options.panic_threshold = 50;
  TieredTree orders(options);
  orders.leaf("primary", {{2, 0, 8}});
  orders.leaf("secondary", {{3, 0, 7}});
  orders.apply({"primary", "secondary"});
  // Envoy's code shares by numbers of hosts, and would give 50 and 50.
  CHECK(orders.shares() == Shares{{"primary/0", 40}, {"secondary/0", 60}});
  CHECK(orders.tree.reached("orders").size() == 20);
}

SCENARIO("ENV: panic minds neither judges nor EDS, but who is DRAINING has no calls",
         "[spec][tiered][ENV-17]") {
  lb::PolicyOptions options;
  options.panic_threshold = 1;
  TieredTree orders(options);
  ClusterExtras extras;
  extras.outlier_detection = OutlierDetection{};
  extras.outlier_detection->max_ejection_percent = 100;
  extras.outlier_detection->failure_percentage = OutlierDetection::FailurePercentage{50, 100, 1, 1};
  orders.world.eds(
      "primary", {"z0:primary/0.0,primary/0.1-,primary/0.2!"}, default_lb_policy(), extras);
  for (const char* host : {"primary/0.0", "primary/0.1", "primary/0.2"})
    orders.tree.up(host);
  orders.apply({"primary"});
  REQUIRE(orders.tree.reached("orders") == Names{"primary/0.0"});
  orders.tree.answer_badly("primary/0.0");
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    orders.tree.call("orders", seed);
  orders.tree.advance(std::chrono::seconds(10));
  CHECK(orders.tree.reached("orders") == Names{"primary/0.0", "primary/0.1"});
}

SCENARIO("ENV: panic counts the hosts that it may use", "[spec][tiered][ENV-29]") {
  lb::PolicyOptions options;
  options.panic_threshold = 50;
  TieredTree orders(options);
  // Three of primary's four hosts drain, so in panic its calls go to one host. Secondary's calls go
  // to all of its three hosts.
  for (int number = 0; number < 4; ++number)
    orders.tree.up(TieredTree::host("primary", 0, number));
  orders.world.eds("primary", {"z0:primary/0.0-,primary/0.1!,primary/0.2!,primary/0.3!"});
  orders.leaf("secondary", {{0, 0, 3}});
  orders.apply({"primary", "secondary"});
  CHECK(orders.shares() == Shares{{"primary/0", 25}, {"secondary/0", 75}});
  THEN("whether a priority panics is judged without them") {
    // Four of primary's 10 hosts drain. 3 of the other 6 are fit: the 50 % that the threshold asks.
    // Secondary has so few fit hosts that the scores do not sum to 100, so panic is possible.
    std::string hosts =
        "z0:primary/0.0,primary/0.4,primary/0.5,primary/0.6-,primary/0.7-,primary/0.8-";
    for (int number = 0; number < 9; ++number)
      orders.tree.up(TieredTree::host("primary", 0, number));
    orders.world.eds("primary", {hosts + ",primary/0.1!,primary/0.2!,primary/0.3!,primary/0.9!"});
    orders.leaf("secondary", {{1, 0, 9}});
    orders.apply();
    CHECK(orders.tree.reached("orders").size() == 3 + 10);  // Only secondary panics.
  }
}

SCENARIO("ENV: without panic the last that are healthy have all calls, in whichever priority",
         "[spec][tiered][ENV-30]") {
  TieredTree orders;
  orders.leaf("primary", {{0, 0, 150}});
  orders.leaf("secondary", {{1, 0, 149}});
  orders.apply({"primary", "secondary"});
  CHECK(orders.shares() == Shares{{"secondary/0", 100}});
  WHEN("the first has one again, it is its turn") {
    orders.leaf("primary", {{1, 0, 149}});
    orders.apply();
    CHECK(orders.shares() == Shares{{"primary/0", 100}});
  }
  WHEN("a score is reached, loads are by scores") {
    orders.leaf("secondary", {{2, 0, 149}});
    orders.leaf("primary", {{1, 0, 149}});
    orders.apply();
    CHECK(orders.shares() == Shares{{"secondary/0", 100}});
  }
  WHEN("the last one is gone, calls fail") {
    orders.down("secondary/0.0");
    const Shares shares = orders.shares();
    REQUIRE(shares.size() == 1);
    CHECK(shares.begin()->first.starts_with("fail UNAVAILABLE: no endpoint is healthy"));
  }
}

SCENARIO("ENV: an aggregate's own panic threshold comes before the runtime's",
         "[spec][tiered][ENV-31]") {
  const std::uint32_t of_runtime = GENERATE(0U, 60U);
  lb::PolicyOptions options;
  options.panic_threshold = of_runtime;
  TieredTree orders(options);
  orders.leaf("primary", {{0, 0, 3}});
  orders.leaf("secondary", {{0, 0, 1}});
  const auto shares = [&](std::optional<std::uint32_t> own) {
    orders.world.aggregate("orders", {"primary", "secondary"}, std::nullopt, own);
    orders.apply();
    Shares found = orders.shares();
    if (found.size() == 1) found = {{found.begin()->first.substr(0, 16), 100}};
    return found;
  };
  const Shares fails{{"fail UNAVAILABLE", 100}};
  const Shares panics{{"primary/0", 75}, {"secondary/0", 25}};
  CHECK(shares(std::nullopt) == (of_runtime == 0 ? fails : panics));
  CHECK(shares(50) == panics);
  CHECK(shares(0) == fails);
  CHECK(shares(1) == panics);
  CHECK(shares(std::nullopt) == (of_runtime == 0 ? fails : panics));
}

// --- the draw ---

SCENARIO("ENV: loads are computed before, and a snapshot keeps its own",
         "[spec][tiered][ENV-18][ENV-19]") {
  TieredTree orders;
  orders.leaf("primary", {{1, 0, 1}});
  orders.leaf("secondary", {kHealthy});
  orders.apply({"primary", "secondary"});
  TreeHarness::Call old = orders.tree.begin("orders", 1);
  orders.leaf("primary", {kHealthy});
  orders.apply();
  CHECK(orders.shares() == Shares{{"primary/0", 100}});
  Shares before;
  const ClusterName cluster("orders");
  for (const std::uint64_t seed : seeds_of_all_draws()) {
    PickArgs args;
    args.cluster = &cluster;
    args.seed = seed;
    const std::string answer = to_text(old.picker->pick(args));
    ++before[answer.substr(9, answer.find('.') - 9)];
  }
  CHECK(before == Shares{{"primary/0", 70}, {"secondary/0", 30}});
  // The first 70 draws belong to the first tier.
  for (std::size_t draw = 0; draw < 100; ++draw) {
    PickArgs args;
    args.cluster = &cluster;
    args.seed = seeds_of_all_draws()[draw];
    const bool is_first = to_text(old.picker->pick(args)).starts_with("complete primary");
    CHECK(is_first == (draw < 70));
  }
  TreeHarness::end(old);
}

SCENARIO("ENV: each attempt of a call is drawn anew", "[spec][tiered][ENV-20]") {
  // The draw depends on the attempt's seed only, not on earlier attempts of the call.
  TieredTree orders;
  orders.leaf("primary", {{1, 0, 1}});
  orders.leaf("secondary", {kHealthy});
  orders.apply({"primary", "secondary"});
  int first = 0;
  constexpr int kAttempts = 10'000;
  for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t seed = draw(7, Salt::kRetryPick, attempt);
    first += orders.tree.pick("orders", seed).starts_with("complete primary") ? 1 : 0;
  }
  CHECK(first > 6'700);
  CHECK(first < 7'300);
}

SCENARIO("ENV: the second tier may be any policy", "[spec][tiered][ENV-21]") {
  for (const ChildPolicy& policy : child_policies()) {
    INFO(policy.name);
    TieredTree orders;
    orders.leaf("primary", {{1, 0, 1}}, policy.config);
    orders.leaf("secondary", {kHealthy}, policy.config);
    orders.apply({"primary", "secondary"});
    for (int calls = 0; policy.connects_when_asked && calls < 10; ++calls)
      orders.shares();
    CHECK(orders.shares() == Shares{{"primary/0", 70}, {"secondary/0", 30}});
  }
}

// --- healthy hosts ---

SCENARIO("ENV: healthy is who is so by EDS, not set aside, and can be reached",
         "[spec][tiered][ENV-24]") {
  const bool unreachable_is_unhealthy = GENERATE(true, false);
  lb::PolicyOptions options;
  options.unreachable_is_unhealthy = unreachable_is_unhealthy;
  TieredTree orders(options);
  ClusterExtras extras;
  extras.outlier_detection = OutlierDetection{};
  extras.outlier_detection->max_ejection_percent = 100;
  extras.outlier_detection->failure_percentage = OutlierDetection::FailurePercentage{50, 100, 3, 2};
  orders.leaf("secondary", {kHealthy});
  orders.leaf("primary", {{4, 0, 0}}, default_lb_policy(), extras);
  orders.apply({"primary", "secondary"});
  REQUIRE(orders.shares() == Shares{{"primary/0", 100}});
  const Shares half{{"primary/0", 70}, {"secondary/0", 30}};
  const Shares all{{"primary/0", 100}};
  WHEN("two of four are UNHEALTHY by EDS") {
    orders.leaf("primary", {{2, 0, 2}}, default_lb_policy(), extras);
    orders.apply();
    CHECK(orders.shares() == half);
  }
  WHEN("two of four are set aside") {
    orders.tree.answer_badly("primary/0.0");
    orders.tree.answer_badly("primary/0.1");
    for (std::uint64_t seed = 1; seed <= 60; ++seed)
      orders.tree.call("orders", seed);
    orders.tree.advance(std::chrono::seconds(10));
    CHECK(orders.shares() == half);
    AND_WHEN("their time is over") {
      orders.tree.answer_badly("primary/0.0", false);
      orders.tree.answer_badly("primary/0.1", false);
      orders.tree.advance(std::chrono::seconds(40));
      CHECK(orders.shares() == all);
    }
  }
  WHEN("two of four cannot be reached") {
    orders.tree.down("primary/0.0");
    orders.tree.down("primary/0.1");
    CHECK(orders.shares() == (unreachable_is_unhealthy ? half : all));
    AND_WHEN("one tries again") {
      orders.tree.silence("primary/0.0");
      THEN("it is not healthy before it is READY") {
        CHECK(orders.shares() == (unreachable_is_unhealthy ? half : all));
        orders.tree.up("primary/0.0");
        CHECK(orders.shares() == all);
      }
    }
  }
}

SCENARIO("ENV: a drain that goes from host to host is no failure", "[spec][tiered][ENV-28]") {
  TieredTree orders;
  orders.leaf("secondary", {kHealthy});
  orders.leaf("primary", {{10, 0, 0}});
  const auto drain = [&](int first, int count, const std::string& more = "") {
    std::vector<std::string> hosts;
    for (int number = 0; number < 10; ++number) {
      const bool drains = number >= first && number < first + count;
      hosts.push_back(TieredTree::host("primary", 0, number) + (drains ? "!" : ""));
    }
    orders.world.eds("primary", {absl::StrCat("z0:", absl::StrJoin(hosts, ","), more)});
    orders.apply({"primary", "secondary"});
    return orders.shares();
  };
  const Shares all{{"primary/0", 100}};
  CHECK(drain(0, 5) == all);
  for (int host = 0; host < 10; ++host)
    CHECK(drain(host, 1) == all);
  CHECK(drain(0, 9) == all);
  THEN("the rest is judged by itself: one of two is half") {
    CHECK(drain(0, 9, ",primary/0.10-") == Shares{{"primary/0", 70}, {"secondary/0", 30}});
  }
  THEN("a priority of which all drain has none, as one without hosts") {
    CHECK(drain(0, 10) == Shares{{"secondary/0", 100}});
  }
  THEN("weights of those that drain do not count either") {
    ClusterExtras extras;
    extras.weighted_priority_health = true;
    orders.world.eds("primary",
                     {"z0:primary/0.0=5,primary/0.1=5-,primary/0.2=90!"},
                     default_lb_policy(),
                     extras);
    orders.apply();
    CHECK(orders.shares() == Shares{{"primary/0", 70}, {"secondary/0", 30}});
  }
}

// --- connected tiers ---

SCENARIO("ENV: every tier that has a load is connected, and none below that has none",
         "[spec][tiered][ENV-25]") {
  TieredTree orders;
  orders.leaf("primary", {{1, 0, 1}, {2, 0, 0}, {2, 0, 0}});
  orders.leaf("secondary", {kHealthy});
  orders.apply({"primary", "secondary"});
  CHECK(orders.shares() == Shares{{"primary/0", 70}, {"primary/1", 30}});
  CHECK(orders.tree.connected() == Names{"primary/0.0", "primary/1.0", "primary/1.1"});
  WHEN("the second one fails") {
    orders.tree.down("primary/1.0");
    orders.tree.down("primary/1.1");
    THEN("the third, which nobody had tried, takes its place") {
      CHECK(orders.shares() == Shares{{"primary/0", 70}, {"primary/2", 30}});
    }
    AND_WHEN("it fails, too") {
      orders.tree.down("primary/2.0");
      orders.tree.down("primary/2.1");
      CHECK(orders.shares() == Shares{{"primary/0", 70}, {"secondary/0", 30}});
      THEN("who comes back has his calls again: he was tried all the time") {
        orders.tree.advance(std::chrono::minutes(16));
        orders.tree.up("primary/1.0");
        orders.tree.up("primary/1.1");
        CHECK(orders.shares() == Shares{{"primary/0", 70}, {"primary/1", 30}});
      }
    }
  }
  WHEN("the first one suffices again") {
    orders.leaf("primary", {kHealthy, kHealthy, kHealthy});
    orders.apply();
    CHECK(orders.shares() == Shares{{"primary/0", 100}});
    THEN("the second keeps its connections for a while") {
      orders.tree.advance(std::chrono::minutes(14));
      CHECK(orders.tree.connected().size() == 4);
      orders.tree.advance(std::chrono::minutes(2));
      CHECK(orders.tree.connected() == Names{"primary/0.0", "primary/0.1"});
    }
  }
}

SCENARIO("ENV: a tier whose hosts are all being connected has its calls wait",
         "[spec][tiered][ENV-25]") {
  TieredTree orders;
  orders.leaf("primary", {{1, 0, 1}});
  orders.leaf("secondary", {kHealthy});
  orders.tree.silence("secondary/0.0");
  orders.tree.silence("secondary/0.1");
  orders.apply({"primary", "secondary"});
  CHECK(orders.shares() == Shares{{"primary/0", 70}, {"queue", 30}});
  CHECK(orders.tree.state("m/orders") == kReady);
  orders.tree.up("secondary/0.0");
  CHECK(orders.shares() == Shares{{"primary/0", 70}, {"secondary/0", 30}});
}

// --- the mode ---

SCENARIO("ENV: the mode is the cluster's, else the runtime's, and may change with no call lost",
         "[spec][tiered][ENV-2]") {
  TieredTree orders;
  orders.leaf("primary", {{1, 0, 1}});
  orders.leaf("secondary", {kHealthy});
  orders.apply({"primary", "secondary"});
  const Shares spread{{"primary/0", 70}, {"secondary/0", 30}};
  const Shares first{{"primary/0", 100}};
  CHECK(orders.shares() == spread);
  orders.world.aggregate("orders", {"primary", "secondary"}, AggregateMode::kPriority);
  orders.apply();
  CHECK(orders.shares() == first);
  orders.world.aggregate("orders", {"primary", "secondary"}, AggregateMode::kTiered);
  orders.apply();
  CHECK(orders.shares() == spread);
  WHEN("a mode is not READY yet") {
    // The leaves of the new mode have new subchannel maps, so none of their hosts is connected yet.
    for (const char* host : {"primary/0.0", "secondary/0.0", "secondary/0.1"})
      orders.tree.silence(host);
    orders.tree.up("primary/0.0");
    orders.apply();
    orders.world.aggregate("orders", {"primary", "secondary"}, AggregateMode::kPriority);
    orders.apply();
    CHECK(orders.shares() == first);
  }
}

// --- sessions ---

namespace {

/// A tree with the filter of sessions in its listener, and calls with a cookie that names hosts.
struct Sessions : TieredTree {
  explicit Sessions(lb::PolicyOptions options = {}) : TieredTree(std::move(options)) {
    world.sessions(true);
  }

  enum class Cookie { kRead, kKnownAtSight };

  /// The outcome of a call with a cookie that names `hosts`: "complete secondary/0.1 (hit)".
  std::string visit(const std::string& hosts,
                    std::uint64_t seed,
                    bool strict = false,
                    Cookie cookie = Cookie::kRead) {
    const ClusterName cluster("orders");
    lb::SessionArgs session{.hosts = hosts, .strict = strict, .now = tree.now()};
    if (cookie == Cookie::kKnownAtSight) {
      session.hosts = "";  // Empty until the cookie is read.
      session.key = lb::CookieKey(lb::plain_cookie(hosts, "orders"));
    }
    PickArgs args;
    args.cluster = &cluster;
    args.seed = seed;
    args.session = &session;
    const PickResult result = tree.picker()->pick(args);
    if (result.ask) result.ask_target->tell(*result.ask);
    tree.settle();
    return absl::StrCat(to_text(result), " (", to_text(result.affinity.result), ")");
  }

  /// The outcomes of a hundred calls with this cookie, one for each draw.
  Shares visits(const std::string& hosts, bool strict = false, Cookie cookie = Cookie::kRead) {
    Shares answers;
    for (const std::uint64_t seed : seeds_of_all_draws())
      ++answers[visit(hosts, seed, strict, cookie)];
    return answers;
  }
};

}  // namespace

SCENARIO("ENV: a session stays on its host, whatever the draw", "[spec][tiered][ENV-27][A55-35]") {
  const bool strict = GENERATE(false, true);
  const auto cookie = GENERATE(Sessions::Cookie::kRead, Sessions::Cookie::kKnownAtSight);
  Sessions orders;
  orders.leaf("primary", {{1, 0, 1}});
  orders.leaf("secondary", {kHealthy});
  orders.apply({"primary", "secondary"});
  REQUIRE(orders.shares() == Shares{{"primary/0", 70}, {"secondary/0", 30}});
  CHECK(orders.visits("primary/0.0", strict, cookie) ==
        Shares{{"complete primary/0.0 (hit)", 100}});
  CHECK(orders.visits("secondary/0.1", strict, cookie) ==
        Shares{{"complete secondary/0.1 (hit)", 100}});
  THEN("calls without a session are spread as before") {
    CHECK(orders.shares() == Shares{{"primary/0", 70}, {"secondary/0", 30}});
  }
  WHEN("its leaf has no load any more") {
    orders.leaf("primary", {{2, 0, 0}});
    orders.apply();
    REQUIRE(orders.shares() == Shares{{"primary/0", 100}});
    THEN("it stays there for as long as it goes on, over one connection") {
      for (int minute = 0; minute < 30; ++minute) {
        orders.tree.advance(std::chrono::minutes(1));
        REQUIRE(orders.visits("secondary/0.1", strict, cookie) ==
                Shares{{"complete secondary/0.1 (hit)", 100}});
      }
      CHECK(orders.tree.connections("secondary/0.1") == 1);
      CHECK(orders.tree.connected() == Names{"primary/0.0", "primary/0.1", "secondary/0.1"});
    }
  }
  WHEN("the list of leaves is turned round, or the mode changes and is back") {
    orders.apply({"secondary", "primary"});
    CHECK(orders.visits("primary/0.0", strict, cookie) ==
          Shares{{"complete primary/0.0 (hit)", 100}});
    orders.world.aggregate("orders", {"secondary", "primary"}, AggregateMode::kPriority);
    orders.apply();
    orders.world.aggregate("orders", {"primary", "secondary"});
    orders.apply();
    CHECK(orders.visits("secondary/0.1", strict, cookie) ==
          Shares{{"complete secondary/0.1 (hit)", 100}});
  }
}

SCENARIO("ENV: a session whose host is not connected waits for it, and is not drawn",
         "[spec][tiered][ENV-27][A75-42][A75-44]") {
  Sessions orders;
  orders.leaf("primary", {kHealthy});
  orders.leaf("secondary", {kHealthy});
  orders.apply({"primary", "secondary"});
  REQUIRE(orders.tree.connected() == Names{"primary/0.0", "primary/0.1"});
  orders.tree.silence("secondary/0.0");
  CHECK(orders.visit("secondary/0.0", 1) == "queue (created)");
  CHECK(orders.visits("secondary/0.0") == Shares{{"queue (queued)", 100}});
  orders.tree.up("secondary/0.0");
  CHECK(orders.visits("secondary/0.0") == Shares{{"complete secondary/0.0 (hit)", 100}});
}

SCENARIO("ENV: a session that no leaf can keep is drawn, or fails where it is strict",
         "[spec][tiered][ENV-27][A55-35][A55-43]") {
  Sessions orders;
  orders.leaf("primary", {{2, 0, 2}});
  orders.leaf("secondary", {kHealthy});
  orders.apply({"primary", "secondary"});
  const auto by_leaf = [](const Shares& answers) {
    Shares shares;
    for (const auto& [answer, calls] : answers) {
      const std::string place = answer.substr(0, answer.find('.'));
      shares[place + answer.substr(answer.find(" ("))] += calls;
    }
    return shares;
  };
  WHEN("no leaf has its address") {
    CHECK(by_leaf(orders.visits("10.9.9.9:1")) ==
          Shares{{"complete primary/0 (unknown host)", 70},
                 {"complete secondary/0 (unknown host)", 30}});
    CHECK(
        orders.visits("10.9.9.9:1", true) ==
        Shares{
            {"drop UNAVAILABLE: the session is strict, and the host of its cookie cannot be used: "
             "no endpoint of the cluster has this address (unknown host)",
             100}});
  }
  WHEN("it cannot be reached") {
    orders.down("secondary/0.0");
    CHECK(by_leaf(orders.visits("secondary/0.0")) ==
          Shares{{"complete primary/0 (unhealthy)", 70}, {"complete secondary/0 (unhealthy)", 30}});
    THEN("the leaf that knows it says why") {
      const Shares strict = orders.visits("secondary/0.0", true);
      REQUIRE(strict.size() == 1);
      CHECK(strict.begin()->first.starts_with(
          "drop UNAVAILABLE: the session is strict, and its host secondary/0.0 cannot be used: "));
      CHECK(strict.begin()->first.find("no endpoint of") == std::string::npos);
    }
  }
  WHEN("a call has no cookie, a session begins where it is drawn") {
    CHECK(by_leaf(orders.visits("")) ==
          Shares{{"complete primary/0 (new)", 70}, {"complete secondary/0 (new)", 30}});
  }
}

SCENARIO("ENV: a session stays on a host that drains, even if nothing else is left",
         "[spec][tiered][ENV-27][ENV-28][A55-30]") {
  Sessions orders;
  ClusterExtras extras;
  extras.override_host_status.insert(HealthStatus::kDraining);
  orders.leaf("primary", {kHealthy}, default_lb_policy(), extras);
  orders.leaf("secondary", {kHealthy});
  orders.apply({"primary", "secondary"});
  REQUIRE(orders.visit("primary/0.0", 1) == "complete primary/0.0 (hit)");
  orders.world.eds("primary", {"z0:primary/0.0!,primary/0.1!"}, default_lb_policy(), extras);
  orders.apply();
  CHECK(orders.shares() == Shares{{"secondary/0", 100}});
  CHECK(orders.visits("primary/0.0") == Shares{{"complete primary/0.0 (hit draining)", 100}});
  orders.leaf("secondary", {kUnhealthy});
  orders.apply();
  CHECK(orders.tree.state("m/orders") == kFailure);
  CHECK(orders.visits("primary/0.0") == Shares{{"complete primary/0.0 (hit draining)", 100}});
  CHECK(orders.shares().begin()->first.starts_with("fail UNAVAILABLE: no endpoint is healthy"));
  CHECK(orders.visit("secondary/0.9", 1).starts_with("fail UNAVAILABLE: no endpoint is healthy"));
}

SCENARIO("ENV: what is dropped in a session's leaf is dropped, wherever it was drawn to",
         "[spec][tiered][ENV-27][A32]") {
  Sessions orders;
  ClusterExtras extras;
  extras.drops = {{"throttle", 1'000'000}};
  orders.leaf("primary", {{1, 0, 1}});
  orders.leaf("secondary", {kHealthy}, default_lb_policy(), extras);
  orders.apply({"primary", "secondary"});
  for (const std::uint64_t seed : seeds_of_all_draws())
    CHECK(orders.visit("secondary/0.0", seed).starts_with("drop UNAVAILABLE"));
  CHECK(orders.visits("primary/0.0") == Shares{{"complete primary/0.0 (hit)", 100}});
}

SCENARIO("ENV: an explained pick says in which leaf a session's host is",
         "[spec][tiered][ENV-27]") {
  Sessions orders;
  orders.leaf("primary", {{1, 0, 1}});
  orders.leaf("secondary", {kHealthy});
  orders.apply({"primary", "secondary"});

  struct Told final : PickTrace {
    std::vector<PickStep> steps;

    void tell(PickStep step) override { steps.push_back(std::move(step)); }
  };

  const auto explain = [&](const std::string& hosts, bool strict = false) {
    const ClusterName cluster("orders");
    const lb::SessionArgs session{.hosts = hosts, .strict = strict, .now = orders.tree.now()};
    PickArgs args;
    args.cluster = &cluster;
    args.seed = seeds_of_all_draws()[0];
    args.session = &session;
    Told told;
    orders.tree.picker()->explain(args, told);
    std::vector<PickStep> of_tiered;
    std::ranges::copy_if(told.steps, std::back_inserter(of_tiered), [](const PickStep& step) {
      return step.part == "tiered";
    });
    return of_tiered;
  };
  const PickStep drawn{"tiered",
                       "primary priority 0",
                       "drew 1 of 100; loads: primary priority 0 70 %; secondary priority 0 30 %",
                       "CDS orders"};
  using Steps = std::vector<PickStep>;
  CHECK(explain("secondary/0.0") ==
        Steps{{"tiered", "secondary", "it has the host of the call's cookie", "CDS orders"}});
  CHECK(explain("") == Steps{drawn});
  CHECK(explain("10.9.9.9:1") == Steps{{"tiered",
                                        "the call is drawn",
                                        "no leaf has an endpoint of its cookie's address",
                                        "CDS orders"},
                                       drawn});
  orders.down("secondary/0.0");
  CHECK(
      explain("secondary/0.0") ==
      Steps{{"tiered", "the call is drawn", "the host of its cookie cannot be used", "CDS orders"},
            drawn});
  CHECK(explain("secondary/0.0", true) ==
        Steps{{"tiered",
               "secondary",
               "it has the host of the call's cookie, which cannot be used",
               "CDS orders"}});
  // Both leaves have the host, and have it connected.
  orders.tree.up("both");
  orders.world.eds("primary", {"z0:both,primary/0.1-"});
  orders.world.eds("secondary", {"z0:both"});
  orders.apply();
  CHECK(explain("both") ==
        Steps{{"tiered", "primary", "it has the host of the call's cookie", "CDS orders"}});
}

}  // namespace signalbox::test
