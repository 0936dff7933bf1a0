// SPDX-License-Identifier: Apache-2.0
//
// Plans: the predicted load of every cluster, priority, locality and endpoint.
#include "lb/health/plan.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "tests/support/property.hpp"

namespace signalbox::lb::plan_test {
namespace {

constexpr PlanAnswer kPriorityNow{AggregateMode::kPriority, false};
constexpr PlanAnswer kPriorityThen{AggregateMode::kPriority, true};
constexpr PlanAnswer kTieredNow{AggregateMode::kTiered, false};
constexpr PlanAnswer kTieredThen{AggregateMode::kTiered, true};
constexpr CallShare kPercent = kAllCalls / 100;

using Shares = std::vector<CallShare>;

// --- worlds ---

Endpoint endpoint(const std::string& address,
                  HealthStatus health = HealthStatus::kUnknown,
                  std::uint32_t weight = 1) {
  return {.addresses = {Address(address)}, .health = health, .weight = weight};
}

LocalityPtr locality(const std::string& zone,
                     std::vector<Endpoint> endpoints,
                     std::uint32_t weight = 1) {
  return std::make_shared<const Locality>(
      Locality{{"north", zone, ""}, weight, std::move(endpoints)});
}

LbConfigPtr round_robin() {
  return make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{})});
}

PlanLeaf leaf(const std::string& name, std::vector<Priority> priorities) {
  auto endpoints = std::make_shared<Endpoints>();
  endpoints->priorities = std::move(priorities);
  return {ClusterName(name), round_robin(), std::move(endpoints)};
}

PlanInput aggregate(std::vector<PlanLeaf> leaves) {
  return {ClusterName("orders"), true, std::nullopt, AggregateMode::kPriority, std::move(leaves)};
}

// A leaf with `count` priorities of one endpoint each.
PlanLeaf with_priorities(const std::string& name, std::size_t count) {
  std::vector<Priority> priorities;
  for (std::size_t i = 0; i < count; ++i)
    priorities.push_back({{locality("a", {endpoint(absl::StrCat(name, "-", i, ":1"))})}});
  return leaf(name, std::move(priorities));
}

// Primary in zone-a and zone-b, secondary in zone-c, two endpoints in each.
PlanInput three_zones() {
  return aggregate(
      {leaf("primary",
            {{{locality("zone-a", {endpoint("a1:1"), endpoint("a2:1")}),
               locality("zone-b", {endpoint("b1:1"), endpoint("b2:1")})}}}),
       leaf("secondary", {{{locality("zone-c", {endpoint("c1:1"), endpoint("c2:1")})}}})});
}

Plan planned(const PlanInput& input, const PlanAssumptions& assumptions = {}) {
  auto plan = make_plan(input, assumptions);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *std::move(plan);
}

std::string refused(const PlanInput& input, const PlanAssumptions& assumptions) {
  const auto plan = make_plan(input, assumptions);
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

// --- the content of a plan ---

Shares of_leaves(const Plan& plan, PlanAnswer answer) {
  Shares shares;
  for (const PlannedLeaf& leaf : plan.leaves)
    shares.push_back(share_in(leaf.shares, answer));
  return shares;
}

Shares of_priorities(const Plan& plan, PlanAnswer answer) {
  Shares shares;
  for (const PlannedLeaf& leaf : plan.leaves) {
    for (const PlannedPriority& priority : leaf.priorities)
      shares.push_back(share_in(priority.shares, answer));
  }
  return shares;
}

std::map<std::string, CallShare> of_endpoints(const Plan& plan, PlanAnswer answer) {
  std::map<std::string, CallShare> shares;
  for (const PlannedLeaf& leaf : plan.leaves) {
    for (const PlannedPriority& priority : leaf.priorities) {
      for (const PlannedLocality& locality : priority.localities) {
        for (const PlannedEndpoint& endpoint : locality.endpoints)
          shares[endpoint.addresses.front().str()] = share_in(endpoint.shares, answer);
      }
    }
  }
  return shares;
}

Shares percents(std::vector<CallShare> percents) {
  for (CallShare& percent : percents)
    percent *= kPercent;
  return percents;
}

PlanAssumptions down(std::vector<std::string> names) {
  PlanAssumptions assumptions;
  assumptions.down = std::move(names);
  return assumptions;
}

PlanAssumptions healthy(const std::string& leaf, const std::vector<std::uint32_t>& percents) {
  PlanAssumptions assumptions;
  for (std::size_t i = 0; i < percents.size(); ++i)
    assumptions.health.push_back({ClusterName(leaf), i, percents[i], 0});
  return assumptions;
}

PlanAssumptions operator+(PlanAssumptions left, const PlanAssumptions& right) {
  left.health.insert(left.health.end(), right.health.begin(), right.health.end());
  return left;
}

// The first unhealthy endpoint of the first leaf gets the weight 97; others have 1.
PlanInput heavy_unhealthy(PlanInput input) {
  auto endpoints = std::make_shared<Endpoints>(*input.leaves[0].endpoints);
  auto heavy = std::make_shared<Locality>(*endpoints->priorities[0].unhealthy[0]);
  heavy->endpoints[0].weight = 97;
  endpoints->priorities[0].unhealthy = {heavy};
  endpoints->weighted_priority_health = true;
  input.leaves[0].endpoints = endpoints;
  return input;
}

// --- tiered ---

struct Row {
  int number;
  std::vector<std::uint32_t> primary;
  std::vector<std::uint32_t> secondary;
  std::vector<CallShare> leaves;
  std::vector<CallShare> priorities;
};

const Row kTable[] = {
    {1, {100, 100, 100}, {100, 100}, {100, 0}, {100, 0, 0, 0, 0}},
    {2, {72, 100, 100}, {100, 100}, {100, 0}, {100, 0, 0, 0, 0}},
    {3, {71, 1, 0}, {100, 100}, {100, 0}, {99, 1, 0, 0, 0}},
    {4, {71, 0, 0}, {100, 100}, {99, 1}, {99, 0, 0, 1, 0}},
    {5, {50, 0, 0}, {50, 0}, {70, 30}, {70, 0, 0, 30, 0}},
    {6, {20, 20, 10}, {25, 25}, {70, 30}, {28, 28, 14, 30, 0}},
    {7, {20, 0, 0}, {20, 0}, {50, 50}, {50, 0, 0, 50, 0}},
    {8, {0, 0, 0}, {100, 0}, {0, 100}, {0, 0, 0, 100, 0}},
    {9, {0, 0, 0}, {72, 0}, {0, 100}, {0, 0, 0, 100, 0}},
};

TEST_CASE("plan: the table of Envoy's document, to the integer", "[lb][plan][ENV-22]") {
  const PlanInput input =
      aggregate({with_priorities("primary", 3), with_priorities("secondary", 2)});
  for (const Row& row : kTable) {
    INFO("row " << row.number);
    const Plan plan =
        planned(input, healthy("primary", row.primary) + healthy("secondary", row.secondary));
    CHECK(of_leaves(plan, kTieredThen) == percents(row.leaves));
    CHECK(of_priorities(plan, kTieredThen) == percents(row.priorities));
    CHECK(of_leaves(plan, kTieredNow) == percents({100, 0}));
  }
}

TEST_CASE("plan: healthy 10/20/10, degraded 20/10/0 percent, to the integer",
          "[lb][plan][ENV-15][ENV-16]") {
  PlanAssumptions assumptions;
  assumptions.health = {{ClusterName("primary"), 0, 10, 20},
                        {ClusterName("primary"), 1, 20, 10},
                        {ClusterName("primary"), 2, 10, 0}};
  const Plan plan = planned(aggregate({with_priorities("primary", 3)}), assumptions);
  CHECK(of_priorities(plan, kTieredThen) == percents({16 + 28, 28 + 14, 14}));
  const auto& priorities = plan.leaves[0].priorities;
  CHECK(priorities[0].then == PlannedHealth{14, 28, 100'000, 140, false});
  CHECK(priorities[2].then == PlannedHealth{14, 0, 100'000, 140, false});
}

TEST_CASE("plan: a zone that dies, in either mode", "[lb][plan][A56][A75-1][ENV-7]") {
  const Plan plan = planned(three_zones(), down({"zone-a"}));
  CHECK(of_leaves(plan, kPriorityNow) == percents({100, 0}));
  CHECK(of_leaves(plan, kPriorityThen) == percents({100, 0}));
  CHECK(of_leaves(plan, kTieredNow) == percents({100, 0}));
  CHECK(of_leaves(plan, kTieredThen) == percents({70, 30}));
  CHECK(of_endpoints(plan, kTieredThen) ==
        std::map<std::string, CallShare>{{"a1:1", 0},
                                         {"a2:1", 0},
                                         {"b1:1", 35 * kPercent},
                                         {"b2:1", 35 * kPercent},
                                         {"c1:1", 15 * kPercent},
                                         {"c2:1", 15 * kPercent}});
  CHECK(of_endpoints(plan, kPriorityThen)["b1:1"] == 50 * kPercent);
  CHECK(plan.leaves[0].priorities[0].localities[0].endpoints[0].down);
  CHECK_FALSE(plan.leaves[0].priorities[0].localities[1].endpoints[0].down);
  CHECK(moved_calls(plan, kPriorityNow, kPriorityThen) == 50 * kPercent);
  CHECK(moved_calls(plan, kTieredNow, kTieredThen) == 50 * kPercent);
  CHECK(moved_calls(plan, kPriorityThen, kTieredThen) == 30 * kPercent);
  CHECK(moved_calls(plan, kTieredThen, kTieredThen) == 0);
}

TEST_CASE("plan: one endpoint that dies leaves its locality to the others", "[lb][plan][A75-1]") {
  const Plan plan = planned(three_zones(), down({"a1:1"}));
  const auto shares = of_endpoints(plan, kPriorityThen);
  CHECK(shares.at("a1:1") == 0);
  CHECK(shares.at("a2:1") == 50 * kPercent);
  CHECK(shares.at("b1:1") == 25 * kPercent);
  // 3 of 4 hosts score 105 percent by overprovisioning, so the first leaf keeps all calls.
  CHECK(of_leaves(plan, kTieredThen) == percents({100, 0}));
}

TEST_CASE("plan: EDS health counts, and drains and the unhealthy take no calls",
          "[lb][plan][ENV-9][ENV-16][ENV-24][ENV-28]") {
  Priority first{{locality("a",
                           {endpoint("h:1", HealthStatus::kHealthy),
                            endpoint("d:1", HealthStatus::kDraining)})},
                 {locality("a", {endpoint("g:1", HealthStatus::kDegraded)})},
                 {locality("a",
                           {endpoint("u:1", HealthStatus::kUnhealthy),
                            endpoint("t:1", HealthStatus::kTimeout)})}};
  const Plan plan = planned(aggregate({leaf("primary", {first}), with_priorities("secondary", 1)}));
  const auto& priority = plan.leaves[0].priorities[0];
  CHECK(priority.localities.size() == 1);
  CHECK(priority.now ==
        // 1 of 4 hosts is healthy, 1 degraded: a score of 35 each. The DRAINING host does not
        // count.
        PlannedHealth{35, 35, 250'000, 140, false});
  const auto tiered = of_endpoints(plan, kTieredNow);
  CHECK(tiered == std::map<std::string, CallShare>{{"h:1", 35 * kPercent},
                                                   {"g:1", 0},
                                                   {"d:1", 0},
                                                   {"u:1", 0},
                                                   {"t:1", 0},
                                                   {"secondary-0:1", 65 * kPercent}});
  CHECK(of_endpoints(plan, kPriorityNow).at("h:1") == kAllCalls);
}

TEST_CASE("plan: degraded endpoints have what healthy ones leave", "[lb][plan][ENV-16]") {
  const Priority first{{locality("a", {endpoint("h:1")})},
                       {locality("a", {endpoint("g:1", HealthStatus::kDegraded)})},
                       {locality("a", {endpoint("u:1", HealthStatus::kUnhealthy)})}};
  const Plan plan = planned(aggregate({leaf("primary", {first})}));
  // Both tiers score 46 of a total of 92, so each has half of the calls.
  CHECK(of_endpoints(plan, kTieredNow) == std::map<std::string, CallShare>{{"h:1", 50 * kPercent},
                                                                           {"g:1", 50 * kPercent},
                                                                           {"u:1", 0}});
  CHECK(of_endpoints(plan, kPriorityNow).at("h:1") == kAllCalls);
}

TEST_CASE("plan: overprovisioning and weights are EDS's own", "[lb][plan][ENV-7][ENV-9]") {
  PlanInput input = three_zones();
  auto endpoints = std::make_shared<Endpoints>(*input.leaves[0].endpoints);
  endpoints->overprovisioning_percent = 100;
  input.leaves[0].endpoints = endpoints;
  CHECK(of_leaves(planned(input, down({"zone-a"})), kTieredThen) == percents({50, 50}));

  endpoints = std::make_shared<Endpoints>(*endpoints);
  endpoints->weighted_priority_health = true;
  endpoints->priorities[0].localities[1] = locality(
      "zone-b",
      {endpoint("b1:1", HealthStatus::kUnknown, 2), endpoint("b2:1", HealthStatus::kUnknown, 6)});
  input.leaves[0].endpoints = endpoints;
  CHECK(of_leaves(planned(input, down({"zone-a"})), kTieredThen) == percents({80, 20}));
}

TEST_CASE("plan: where nobody is fit calls fail, or panic", "[lb][plan][ENV-17]") {
  PlanAssumptions all = down({"zone-a", "zone-b", "zone-c"});
  const Plan plan = planned(three_zones(), all);
  CHECK(plan.failing.priority == PlannedShare{0, kAllCalls});
  CHECK(plan.failing.tiered == PlannedShare{0, kAllCalls});
  CHECK(moved_calls(plan, kTieredNow, kTieredThen) == kAllCalls);

  // The hosts are assumed down, so calls fail in panic, too.
  all.panic_threshold = 50;
  CHECK(planned(three_zones(), all).failing.tiered == PlannedShare{0, kAllCalls});

  // Hosts that EDS marks unhealthy can still get calls in panic. Loads then go by the number of
  // hosts.
  const PlanInput unwell = aggregate(
      {leaf("primary", {{{}, {}, {locality("a", {endpoint("u:1", HealthStatus::kUnhealthy)})}}}),
       leaf("secondary",
            {{{},
              {},
              {locality("a",
                        {endpoint("v:1", HealthStatus::kUnhealthy),
                         endpoint("w:1", HealthStatus::kUnhealthy),
                         endpoint("x:1", HealthStatus::kTimeout)})}}})});
  // DRAINING hosts take no calls.
  const PlanInput draining =
      aggregate({leaf("primary",
                      {{{locality("a", {endpoint("d:1", HealthStatus::kDraining)})},
                        {},
                        {locality("a", {endpoint("u:1", HealthStatus::kUnhealthy)})}}})});
  PlanAssumptions panic;
  panic.panic_threshold = 50;
  CHECK(of_endpoints(planned(draining, panic), kTieredNow) ==
        std::map<std::string, CallShare>{{"d:1", 0}, {"u:1", kAllCalls}});
  const Plan panicking = planned(unwell, panic);
  CHECK(of_leaves(panicking, kTieredNow) == percents({25, 75}));
  CHECK(of_leaves(planned(heavy_unhealthy(unwell), panic), kTieredNow) == percents({25, 75}));
  CHECK(panicking.leaves[1].priorities[0].now.panic);
  PlanInput with_empty = unwell;
  auto more = std::make_shared<Endpoints>(*with_empty.leaves[0].endpoints);
  more->priorities.push_back({});
  with_empty.leaves[0].endpoints = more;
  // A priority without hosts does not panic.
  CHECK_FALSE(planned(with_empty, panic).leaves[0].priorities[1].now.panic);
  CHECK(panicking.failing.priority.now == kAllCalls);
  CHECK(planned(unwell).failing.tiered.now == kAllCalls);
}

TEST_CASE("plan: panic by numbers counts the endpoints that it may use", "[lb][plan][ENV-29]") {
  const PlanInput input =
      aggregate({leaf("primary",
                      {{{locality("a",
                                  {endpoint("d:1", HealthStatus::kDraining),
                                   endpoint("e:1", HealthStatus::kDraining)})},
                        {},
                        {locality("a", {endpoint("u:1", HealthStatus::kUnhealthy)})}}}),
                 leaf("secondary",
                      {{{}, {}, {locality("a", {endpoint("v:1", HealthStatus::kUnhealthy)})}}})});
  PlanAssumptions panic;
  panic.panic_threshold = 50;
  CHECK(of_leaves(planned(input, panic), kTieredNow) == percents({50, 50}));

  // Weights count in the priority's health, which is 3 %, but not in its panic.
  const auto fit = [&](const std::vector<Endpoint>& healthy) {
    const auto unhealthy = locality("a", {endpoint("u:1", HealthStatus::kUnhealthy)});
    return heavy_unhealthy(
        aggregate({leaf("primary", {{{locality("a", healthy)}, {}, {unhealthy}}})}));
  };
  const auto is_in_panic = [&](const PlanInput& at) {
    return planned(at, panic).leaves[0].priorities[0].now.panic;
  };
  CHECK_FALSE(is_in_panic(fit({endpoint("a:1"), endpoint("b:1"), endpoint("c:1")})));
  CHECK_FALSE(is_in_panic(fit({endpoint("a:1")})));
  panic.panic_threshold = 51;
  CHECK(is_in_panic(fit({endpoint("a:1")})));
}

TEST_CASE("plan: without panic the first priority with a healthy endpoint has all calls",
          "[lb][plan][ENV-30]") {
  std::vector<Endpoint> many;
  for (int i = 0; i < 150; ++i)
    many.push_back(endpoint(absl::StrCat("u", i, ":1"), HealthStatus::kUnhealthy));
  const Priority nobody{{}, {}, {locality("a", many)}};
  const Priority one{{locality("a", {endpoint("h:1")})}, {}, {locality("a", many)}};
  const Plan plan = planned(aggregate({leaf("primary", {nobody}), leaf("secondary", {one})}));
  CHECK(of_leaves(plan, kTieredNow) == percents({0, 100}));
  CHECK(of_endpoints(plan, kTieredNow).at("h:1") == kAllCalls);
  CHECK(plan.failing.tiered.now == 0);
}

TEST_CASE("plan: an aggregate's own panic threshold comes before what is assumed",
          "[lb][plan][ENV-31]") {
  PlanInput input = aggregate({leaf("primary",
                                    {{{locality("a", {endpoint("h:1")})},
                                      {},
                                      {locality("a",
                                                {endpoint("u:1", HealthStatus::kUnhealthy),
                                                 endpoint("v:1", HealthStatus::kUnhealthy)})}}})});
  PlanAssumptions assumed;
  assumed.panic_threshold = 50;
  Plan plan = planned(input, assumed);
  CHECK(plan.panic_threshold == 50);
  CHECK_FALSE(plan.panic_threshold_is_own);
  CHECK(plan.leaves[0].priorities[0].now.panic);
  input.own_panic_threshold = 0;
  plan = planned(input, assumed);
  CHECK(plan.panic_threshold == 0);
  CHECK(plan.panic_threshold_is_own);
  CHECK(of_endpoints(plan, kTieredNow).at("h:1") == kAllCalls);
  input.own_panic_threshold = 34;
  CHECK(planned(input).leaves[0].priorities[0].now.panic);
  // A leaf cluster has no panic threshold of its own.
  input.is_aggregate = false;
  CHECK_FALSE(planned(input).panic_threshold_is_own);
}

// --- priority ---

TEST_CASE("plan: in priority mode the first with anybody takes all", "[lb][plan][A56][A75-1]") {
  const PlanInput input =
      aggregate({with_priorities("primary", 2), with_priorities("secondary", 2)});
  const auto then = [&](const PlanAssumptions& assumptions) {
    return of_priorities(planned(input, assumptions), kPriorityThen);
  };
  CHECK(then(healthy("primary", {1})) == percents({100, 0, 0, 0}));
  CHECK(then(healthy("primary", {0})) == percents({0, 100, 0, 0}));
  CHECK(then(healthy("primary", {0, 0})) == percents({0, 0, 100, 0}));
  CHECK(then(healthy("primary", {0, 0}) + healthy("secondary", {0})) == percents({0, 0, 0, 100}));
  // Degraded hosts do not count in priority mode.
  PlanAssumptions degraded;
  degraded.health = {{ClusterName("primary"), 0, 0, 100}};
  CHECK(then(degraded) == percents({0, 100, 0, 0}));
}

TEST_CASE("plan: leaves without endpoints are passed over", "[lb][plan][ENV-6]") {
  PlanInput input = three_zones();
  input.leaves[0].endpoints = nullptr;
  const Plan missing = planned(input);
  CHECK(of_leaves(missing, kPriorityNow) == percents({0, 100}));
  CHECK(of_leaves(missing, kTieredNow) == percents({0, 100}));
  input.leaves[0].endpoints = std::make_shared<const Endpoints>(Endpoints{{Priority{}}, {}});
  CHECK(of_leaves(planned(input), kTieredNow) == percents({0, 100}));
  CHECK(planned(aggregate({})).failing.priority.now == kAllCalls);
}

TEST_CASE("plan: knows in which mode the cluster runs", "[lb][plan][D1]") {
  PlanInput input = three_zones();
  CHECK(planned(input).mode == AggregateMode::kPriority);
  CHECK_FALSE(planned(input).mode_is_own);
  input.runtime_mode = AggregateMode::kTiered;
  CHECK(planned(input).mode == AggregateMode::kTiered);
  input.own_mode = AggregateMode::kPriority;
  CHECK(planned(input).mode == AggregateMode::kPriority);
  CHECK(planned(input).mode_is_own);
  input.is_aggregate = false;
  input.own_mode = std::nullopt;
  CHECK(planned(input).mode == AggregateMode::kPriority);
}

// --- what may be assumed ---

TEST_CASE("plan: a zone has three names", "[lb][plan]") {
  PlanInput input = aggregate({leaf(
      "primary",
      {{{std::make_shared<const Locality>(Locality{{"north", "a", "1"}, 1, {endpoint("n1:1")}}),
         std::make_shared<const Locality>(Locality{{"north", "a", "2"}, 1, {endpoint("n2:1")}}),
         std::make_shared<const Locality>(Locality{{"south", "a", ""}, 1, {endpoint("s:1")}}),
         std::make_shared<const Locality>(Locality{{}, 1, {endpoint("x:1")}})}}})});
  const auto down_of = [&](const std::string& name) {
    const Plan plan = planned(input, down({name}));
    std::vector<bool> down;
    for (const PlannedLocality& at : plan.leaves[0].priorities[0].localities)
      down.push_back(at.endpoints[0].down);
    return down;
  };
  CHECK(down_of("a") == std::vector<bool>{true, true, true, false});
  CHECK(down_of("north/a") == std::vector<bool>{true, true, false, false});
  CHECK(down_of("north/a/2") == std::vector<bool>{false, true, false, false});
  CHECK(down_of("x:1") == std::vector<bool>{false, false, false, true});
  CHECK(refused(input, down({""})) ==
        "down: there is no zone or endpoint ''; zones: a, north/a, north/a/1, north/a/2, south/a; "
        "endpoints: n1:1, n2:1, s:1, x:1");
}

TEST_CASE("plan: what is not there is refused, with what is", "[lb][plan]") {
  const PlanInput input = three_zones();
  CHECK(refused(input, down({"zone-d"})) ==
        "down: there is no zone or endpoint 'zone-d'; zones: north/zone-a, north/zone-b, "
        "north/zone-c, zone-a, zone-b, zone-c; endpoints: a1:1, a2:1, b1:1, b2:1, c1:1, c2:1");
  CHECK(refused(input, healthy("tertiary", {1})) ==
        "health of tertiary/0: there is no such priority with endpoints; there is: primary/0, "
        "secondary/0");
  CHECK(refused(input, healthy("primary", {1, 1})) ==
        "health of primary/1: there is no such priority with endpoints; there is: primary/0, "
        "secondary/0");
}

TEST_CASE("plan: an error names at most twenty of what there is", "[lb][plan]") {
  const auto known = [](std::size_t priorities) {
    const std::string error =
        refused(aggregate({with_priorities("primary", priorities)}), healthy("tertiary", {1}));
    return error.substr(error.find("there is: ") + 10);
  };
  CHECK(known(0) == "none");
  CHECK(known(2) == "primary/0, primary/1");
  const std::string twenty = known(20);
  CHECK(std::ranges::count(twenty, ',') == 19);
  CHECK_THAT(twenty, Catch::Matchers::EndsWith("primary/9"));
  // Names are in alphabetical order: primary/9 is the last of 23, and primary/6 of the first 20.
  const std::string more = known(23);
  CHECK(std::ranges::count(more, ',') == 19);
  CHECK_THAT(more, Catch::Matchers::EndsWith("primary/6 and 3 more"));
}

TEST_CASE("plan: a priority without endpoints has no health to assume", "[lb][plan][ENV-6]") {
  PlanInput input = three_zones();
  auto endpoints = std::make_shared<Endpoints>(*input.leaves[0].endpoints);
  endpoints->priorities.emplace_back();
  input.leaves[0].endpoints = std::move(endpoints);
  CHECK_THAT(refused(input, healthy("primary", {1, 1})),
             Catch::Matchers::Contains("health of primary/1: there is no such priority"));
}

TEST_CASE("plan: what cannot be is refused", "[lb][plan]") {
  const PlanInput input = three_zones();
  CHECK_THAT(refused(input, healthy("primary", {101})),
             Catch::Matchers::Contains("0 to 100 percent together, found 101 and 0"));
  PlanAssumptions assumptions;
  assumptions.health = {{ClusterName("primary"), 0, 60, 41}};
  CHECK_THAT(refused(input, assumptions), Catch::Matchers::Contains("found 60 and 41"));
  assumptions.health = {{ClusterName("primary"), 0, UINT32_MAX, 1}};  // The sum overflows to 0.
  CHECK_THAT(refused(input, assumptions), Catch::Matchers::Contains("found 4294967295 and 1"));
  assumptions.health = {{ClusterName("primary"), 0, 1, UINT32_MAX}};
  CHECK_THAT(refused(input, assumptions), Catch::Matchers::Contains("found 1 and 4294967295"));
  CHECK_THAT(refused(input, healthy("primary", {1}) + healthy("primary", {1})),
             Catch::Matchers::Contains("primary/0: is assumed twice"));
  assumptions = healthy("primary", {50});
  assumptions.down = {"zone-b"};
  CHECK(refused(input, assumptions) ==
        "down: 'zone-b' has endpoints of primary/0, of which the health is assumed as a whole: "
        "leave one of the two out");
  assumptions = {};
  assumptions.panic_threshold = 101;
  CHECK_THAT(refused(input, assumptions), Catch::Matchers::Contains("0 to 100, found 101"));
}

// --- what always holds ---

PlanInput any_input() {
  PlanInput input = aggregate({});
  int number = 0;
  const auto leaves = *rc::gen::inRange(1, 4);
  for (int l = 0; l < leaves; ++l) {
    std::vector<Priority> priorities;
    const auto count = *rc::gen::inRange(0, 4);
    for (int p = 0; p < count; ++p) {
      Priority priority;
      for (auto* list : priority.lists()) {
        const bool is_fit = list == &priority.localities;
        const auto health = is_fit                       ? HealthStatus::kUnknown
                            : list == &priority.degraded ? HealthStatus::kDegraded
                                                         : HealthStatus::kUnhealthy;
        const auto zones = *rc::gen::inRange(0, 4);
        for (int z = 0; z < zones; ++z) {
          std::vector<Endpoint> endpoints;
          const auto size = *rc::gen::inRange(is_fit ? 0 : 1, 4);
          for (int e = 0; e < size; ++e) {
            endpoints.push_back(endpoint(absl::StrCat("h", number++, ":1"),
                                         health,
                                         *rc::gen::inRange<std::uint32_t>(1, 1000)));
          }
          list->push_back(locality(absl::StrCat("z", z), std::move(endpoints), 1 + z * 7));
        }
      }
      priorities.push_back(std::move(priority));
    }
    input.leaves.push_back(leaf(absl::StrCat("leaf", l), std::move(priorities)));
    const auto policy = *rc::gen::inRange(0, 4);
    if (policy == 1) input.leaves.back().lb_policy = make_lb_config(RingHashConfig{});
    if (policy == 2) input.leaves.back().lb_policy = make_lb_config(PickFirstConfig{});
    if (policy == 3) input.leaves.back().lb_policy = nullptr;
  }
  return input;
}

// Assumes for each priority a health, or that some of its endpoints are down, or nothing.
PlanAssumptions any_assumptions(const PlanInput& input) {
  PlanAssumptions assumptions;
  assumptions.panic_threshold = *rc::gen::element(0, 0, 50, 100);
  for (const PlanLeaf& leaf : input.leaves) {
    for (std::size_t p = 0; p < leaf.endpoints->priorities.size(); ++p) {
      const Priority& priority = leaf.endpoints->priorities[p];
      std::vector<std::string> addresses;
      for (const auto* list : priority.lists()) {
        for (const LocalityPtr& locality : *list) {
          for (const Endpoint& endpoint : locality->endpoints)
            addresses.push_back(endpoint.addresses.front().str());
        }
      }
      const auto what = *rc::gen::inRange(0, 3);
      if (what == 1 && !addresses.empty()) {
        const auto healthy = *rc::gen::inRange<std::uint32_t>(0, 101);
        assumptions.health.push_back(
            {leaf.name, p, healthy, *rc::gen::inRange<std::uint32_t>(0, 101 - healthy)});
      }
      if (what != 2) continue;
      for (const std::string& address : addresses) {
        if (*rc::gen::inRange(0, 2) == 1) assumptions.down.push_back(address);
      }
    }
  }
  return assumptions;
}

TEST_CASE("plan: shares sum up, whatever is assumed", "[lb][plan][property][ENV-14][ENV-23]") {
  CHECK(test::holds("each whole is the sum of its parts", 400, [] {
    const PlanInput input = any_input();
    const PlanAssumptions assumptions = any_assumptions(input);
    const auto plan = make_plan(input, assumptions);
    RC_ASSERT(plan.ok());
    for (const PlanAnswer answer : {kPriorityNow, kPriorityThen, kTieredNow, kTieredThen}) {
      CallShare all = share_in(plan->failing, answer);
      for (const PlannedLeaf& leaf : plan->leaves) {
        CallShare of_leaf = 0;
        for (const PlannedPriority& priority : leaf.priorities) {
          CallShare of_priority = 0;
          for (const PlannedLocality& locality : priority.localities) {
            CallShare of_locality = 0;
            for (const PlannedEndpoint& endpoint : locality.endpoints) {
              const CallShare share = share_in(endpoint.shares, answer);
              RC_ASSERT(share == 0 || !answer.then || !endpoint.down);
              of_locality += share;
            }
            RC_ASSERT(of_locality == share_in(locality.shares, answer));
            of_priority += of_locality;
          }
          RC_ASSERT(of_priority == share_in(priority.shares, answer));
          // The load of a priority is a whole percent, as in Envoy.
          RC_ASSERT(of_priority % kPercent == 0);
          of_leaf += of_priority;
        }
        RC_ASSERT(of_leaf == share_in(leaf.shares, answer));
        all += of_leaf;
      }
      RC_ASSERT(all == kAllCalls);
    }
  }));
}

TEST_CASE("plan: without assumptions now and then are the same", "[lb][plan][property]") {
  CHECK(test::holds("nothing moves", 200, [] {
    const auto plan = make_plan(any_input(), {});
    RC_ASSERT(plan.ok());
    RC_ASSERT(moved_calls(*plan, kPriorityNow, kPriorityThen) == 0U);
    RC_ASSERT(moved_calls(*plan, kTieredNow, kTieredThen) == 0U);
  }));
}

TEST_CASE("plan: a higher priority that is better has no less", "[lb][plan][property][ENV-23]") {
  const PlanInput input =
      aggregate({with_priorities("primary", 1), with_priorities("secondary", 1)});
  CHECK(test::holds("monotone in health", 300, [&] {
    const auto worse = *rc::gen::inRange<std::uint32_t>(0, 101);
    const auto better = *rc::gen::inRange<std::uint32_t>(worse, 101);
    const auto other = *rc::gen::inRange<std::uint32_t>(0, 101);
    const auto share = [&](std::uint32_t health) {
      const auto plan =
          make_plan(input, healthy("primary", {health}) + healthy("secondary", {other}));
      return of_leaves(*plan, kTieredThen)[0];
    };
    RC_ASSERT(share(worse) <= share(better));
  }));
}

TEST_CASE("plan: the calls that stay in the caller's zone", "[lb][plan][zone_split][ENV-34]") {
  PlanInput input = aggregate({leaf(
      "primary",
      {{{locality("zone-a", {endpoint("a1:1"), endpoint("a2:1")}),
         locality("zone-b",
                  {endpoint("b1:1"), endpoint("b2:1"), endpoint("b3:1"), endpoint("b4:1")})}}})});
  input.caller = {"north", "zone-a", ""};
  PlanAssumptions assumptions;
  assumptions.down = {"a1:1"};
  const auto own_zone = [&](PlanAnswer answer) {
    return share_in(planned(input, assumptions).own_zone, answer);
  };
  // By weight, half of the calls.
  CHECK(own_zone(kPriorityNow) == 50 * kPercent);
  input.leaves[0].lb_policy = make_lb_config(
      WrrLocalityConfig{make_lb_config(RoundRobinConfig{}), ZoneAware{.min_cluster_size = 5}});
  // Of six endpoints, a third is in zone-a, and half of the callers.
  CHECK(own_zone(kPriorityNow) == 666'600);
  CHECK(own_zone(kPriorityThen) == 400'000);
  CHECK(planned(input, assumptions).caller == input.caller);
  input.caller = {};
  CHECK(own_zone(kPriorityNow) == 0);
}

TEST_CASE("plan: with fail_traffic_on_panic calls to a priority in panic fail",
          "[lb][plan][ENV-38]") {
  PlanInput input = aggregate({leaf("primary",
                                    {{{locality("zone-a", {endpoint("a1:1")})},
                                      {},
                                      {locality("zone-a",
                                                {endpoint("a2:1", HealthStatus::kUnhealthy),
                                                 endpoint("a3:1", HealthStatus::kUnhealthy),
                                                 endpoint("a4:1", HealthStatus::kUnhealthy)})}}})});
  PlanAssumptions assumptions;
  assumptions.panic_threshold = 50;
  CHECK(share_in(planned(input, assumptions).failing, kTieredNow) == 0);
  input.leaves[0].lb_policy =
      make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{}), std::nullopt, true});
  CHECK(share_in(planned(input, assumptions).failing, kTieredNow) == kAllCalls);
  CHECK(share_in(planned(input, assumptions).failing, kPriorityNow) == 0);
}

}  // namespace
}  // namespace signalbox::lb::plan_test
