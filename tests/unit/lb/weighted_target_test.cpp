// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/weighted_target.hpp"

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/health/host_count.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/tree/wrr_locality.hpp"
#include "tests/support/independent_draws.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/property.hpp"
#include "tests/support/scripted_picker.hpp"
#include "tests/support/xds_world.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

LbConfigPtr targets(const std::map<std::string, std::uint32_t>& weights) {
  WeightedTargetConfig config;
  for (const auto& [name, weight] : weights) {
    config.targets[ChildName(name)] = {
        weight, make_lb_config(RoundRobinConfig{}), LocalityName{"", name, ""}};
  }
  return make_lb_config(std::move(config));
}

EndpointsPtr endpoints_of(XdsWorld& world, const std::string& priority) {
  world.eds("c", {priority});
  const auto config = world.config();
  return std::get<LeafEndpoints>((*config->clusters.at(ClusterName("c")))->children).endpoints;
}

/// The frequency of each answer, over `picks` seeds.
std::map<std::string, int> answers(const PolicyHarness& policy, std::uint64_t picks) {
  std::map<std::string, int> counts;
  for (std::uint64_t seed = 0; seed < picks; ++seed)
    ++counts[policy.pick("", seed)];
  return counts;
}

}  // namespace

TEST_CASE("weighted_target: shares calls by weight among those that are READY",
          "[lb][weighted_target]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({{"x", 1}, {"y", 3}, {"z", 6}}));
  CHECK(policy.published()->state == kConnecting);
  policy.child("x", kReady);
  policy.child("y", kReady);
  policy.step(RebuildDue{});

  const auto two = answers(policy, 10000);
  CHECK(two.size() == 2);
  CHECK(two.at("fail UNAVAILABLE: x READY") == Approx(2500).margin(150));
  CHECK(two.at("fail UNAVAILABLE: y READY") == Approx(7500).margin(150));

  policy.child("z", kReady);
  policy.step(RebuildDue{});
  CHECK(answers(policy, 10000).at("fail UNAVAILABLE: z READY") == Approx(6000).margin(150));

  SECTION("weights change with the configuration, at once") {
    policy.update(targets({{"x", 1}, {"y", 3}, {"z", 0}}));
    CHECK(answers(policy, 1000).size() == 2);
  }
  SECTION("a target that goes is stopped, and gets no more calls") {
    const Texts done = policy.update(targets({{"x", 1}}));
    CHECK(done == Texts{"stop y", "stop z", "publish READY"});
    CHECK(answers(policy, 100).size() == 1);
  }
}

TEST_CASE("weighted_target: the locality is drawn independently of the call's other draws",
          "[lb][weighted_target]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({{"x", 1}, {"y", 1}}));
  policy.child("x", kReady);
  policy.child("y", kReady);
  policy.step(RebuildDue{});
  check_independent(Salt::kLocality, 0.5, [&](std::uint64_t seed) {
    return policy.pick("", seed) == "fail UNAVAILABLE: x READY";
  });
}

TEST_CASE("weighted_target: a retry goes to another locality where its own has only what was tried",
          "[lb][weighted_target][retry]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({{"x", 98}, {"y", 1}, {"z", 1}}));
  std::vector<ConnectionPtr> connections;
  for (const char* name : {"x", "y"}) {
    connections.push_back(std::make_shared<const Connection>(Address(name)));
    ChildStateChanged ready{ChildName(name), kReady};
    ready.picker = make_connection_picker(connections.back());
    ready.generation = policy.generation();
    policy.step(ready);
  }
  policy.child("z", kReady);  // The picker of z fails its picks.
  policy.step(RebuildDue{});
  const auto pick = [&](std::uint64_t seed, const TriedAddresses& tried) {
    return to_text(policy.published()->picker->pick({.seed = seed, .tried = &tried}));
  };
  std::set<std::string> answers;
  for (std::uint64_t seed = 0; seed < 500; ++seed)
    answers.insert(pick(seed, {Address("x")}));
  CHECK(answers == std::set<std::string>{"complete y", "fail UNAVAILABLE: z READY"});
  answers.clear();
  for (std::uint64_t seed = 0; seed < 500; ++seed)
    answers.insert(pick(seed, {Address("x"), Address("y")}));
  CHECK(answers == std::set<std::string>{"complete x", "complete y", "fail UNAVAILABLE: z READY"});
}

TEST_CASE("weighted_target: a retry that asks several localities loses no ask of theirs",
          "[lb][weighted_target][retry]") {
  struct Asks final : AskTarget {
    void tell(const PickAsk& /*ask*/) const override {}
  };

  const Asks asks;
  const Connection x(Address("x"));
  const Connection y(Address("y"));
  const PickAsk ask{PickAsk::Kind::kConnect, Address("wanted")};
  const auto result = [&](const Connection* chosen, bool has_ask) {
    PickResult made;
    if (chosen != nullptr) made.outcome = Complete(chosen);
    if (has_ask) {
      made.ask = ask;
      made.ask_target = &asks;
    }
    return made;
  };
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({{"x", 1}, {"y", 1}}));
  const auto answers_of = [&](const PickResult& of_x, const PickResult& of_y) {
    const std::pair<const char*, PickResult> both[] = {{"x", of_x}, {"y", of_y}};
    for (const auto& [name, answer] : both) {
      ChildStateChanged ready{ChildName(name), kReady};
      ready.picker = testing::answering([answer = answer](const PickArgs&) { return answer; });
      ready.generation = policy.generation();
      policy.step(ready);
    }
    policy.step(RebuildDue{});
    const TriedAddresses tried{Address("x")};
    std::set<std::string> seen;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const PickResult picked = policy.published()->picker->pick({.seed = seed, .tried = &tried});
      CHECK((picked.ask == ask) == (picked.ask_target == &asks));
      seen.insert(to_text(picked) + (picked.ask ? ", asks" : ""));
    }
    return seen;
  };
  using Seen = std::set<std::string>;
  // Locality x leads back, and y has no connection yet: the call goes back, and y connects.
  CHECK(answers_of(result(&x, false), result(nullptr, true)) ==
        Seen{"complete x, asks", "queue, asks"});
  // The picker of x has sent its ask with this result, and will not send it again.
  CHECK(answers_of(result(&x, true), result(&y, false)) == Seen{"complete x, asks", "complete y"});
}

TEST_CASE("weighted_target: the READY ones share all calls by weight, whatever the weights",
          "[lb][weighted_target][property][S5]") {
  CHECK(holds("shares by weight", 1'000, [] {
    const auto count = *rc::gen::inRange<std::size_t>(2, 9);
    const auto drawn = *rc::gen::container<std::vector<std::uint32_t>>(
        count, rc::gen::inRange<std::uint32_t>(1, 1'000'000));
    const auto ready = *rc::gen::container<std::vector<bool>>(count, rc::gen::arbitrary<bool>());
    const auto first = *rc::gen::arbitrary<std::uint64_t>();
    PolicyHarness policy{make_weighted_target()};
    std::map<std::string, std::uint32_t> weights;
    for (std::size_t at = 0; at < count; ++at)
      weights[absl::StrCat("t", at)] = drawn[at];
    policy.update(targets(weights));
    double sum = 0;
    for (std::size_t at = 0; at < count; ++at) {
      policy.child(absl::StrCat("t", at), ready[at] ? kReady : kFailure);
      if (ready[at]) sum += drawn[at];
    }
    policy.step(RebuildDue{});
    RC_PRE(sum > 0);
    constexpr double kPicks = 400;
    std::map<std::string, double> seen;
    for (std::uint64_t pick = 0; pick < static_cast<std::uint64_t>(kPicks); ++pick)
      ++seen[policy.pick("", first + pick)];
    for (std::size_t at = 0; at < count; ++at) {
      const double share = ready[at] ? drawn[at] / sum : 0;
      const double picks = seen[absl::StrCat("fail UNAVAILABLE: t", at, " READY")];
      const double slack = share == 0 ? 0 : 5 * std::sqrt(kPicks * share * (1 - share)) + 4;
      RC_ASSERT(std::abs(picks - kPicks * share) <= slack);
    }
  }));
}

TEST_CASE("wrr_locality: every locality's weight is its target's, exactly",
          "[lb][wrr_locality][property][S5]") {
  const LbConfigPtr config = make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{})});
  CHECK(holds("weights of localities", 1'000, [&] {
    const auto weights =
        *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(1, 5000));
    auto endpoints = std::make_shared<Endpoints>();
    Priority& only = endpoints->priorities.emplace_back();
    for (std::size_t at = 0; at < weights.size(); ++at) {
      only.localities.push_back(
          std::make_shared<const Locality>(Locality{{"", absl::StrCat(at), ""}, weights[at], {}}));
    }
    PolicyHarness policy{make_wrr_locality()};
    policy.update(config, nullptr, endpoints);
    const auto& start = std::get<StartChild>(policy.effects().front());
    const auto& made = std::get<WeightedTargetConfig>(*start.update.config);
    RC_ASSERT(made.targets.size() == weights.size());
    for (const LocalityPtr& locality : only.localities) {
      const auto& target = made.targets.at(ChildName(to_string(locality->name)));
      RC_ASSERT(target.weight == locality->weight);
      RC_ASSERT(target.locality == locality->name);
    }
  }));
}

TEST_CASE("wrr_locality: quotes in names do not make two localities one", "[lb][wrr_locality]") {
  auto endpoints = std::make_shared<Endpoints>();
  Priority& only = endpoints->priorities.emplace_back();
  for (const LocalityName& name :
       {LocalityName{"a\", zone=\"b", "c", ""}, LocalityName{"a", "b\", zone=\"c", ""}})
    only.localities.push_back(std::make_shared<const Locality>(Locality{name, 1, {}}));
  PolicyHarness policy{make_wrr_locality()};
  policy.update(
      make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{})}), nullptr, endpoints);
  const auto& start = std::get<StartChild>(policy.effects().front());
  CHECK(std::get<WeightedTargetConfig>(*start.update.config).targets.size() == 2);
}

TEST_CASE("weighted_target: is as well as its best child", "[lb][weighted_target]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({{"x", 1}, {"y", 1}}));
  policy.child("x", kFailure);
  CHECK(policy.pick() == "queue");
  CHECK(policy.child("y", kFailure) == Texts{"publish TRANSIENT_FAILURE"});
  CHECK(policy.published()->status ==
        absl::UnavailableError("every locality failed, the last with: y failed"));
  CHECK(answers(policy, 100).size() == 2);
  CHECK(policy.step(RebuildDue{}).empty());
  CHECK(policy.child("x", kConnecting) == Texts{"rebuild-soon"});
  CHECK(policy.published()->state == kFailure);
  CHECK(policy.child("x", kReady) == Texts{"publish READY"});
  CHECK(answers(policy, 100).size() == 1);
}

TEST_CASE("weighted_target: wakes a child that went IDLE", "[lb][weighted_target]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({{"x", 1}}));
  policy.child("x", kReady);
  CHECK(policy.child("x", kIdle) == Texts{"exit-idle x", "publish IDLE"});
}

TEST_CASE("weighted_target: without targets fails", "[lb][weighted_target][A37-25]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({}));
  CHECK(policy.published()->state == kFailure);
  CHECK(policy.pick() == "fail UNAVAILABLE: has no endpoints");
}

TEST_CASE("weighted_target: a target without its locality has no endpoints",
          "[lb][weighted_target]") {
  XdsWorld world;
  PolicyHarness policy{make_weighted_target()};
  policy.update(targets({{"ghost", 1}, {"x", 1}}), nullptr, endpoints_of(world, "x:a"));
  std::map<std::string, std::size_t> localities;
  for (const LbEffect& effect : policy.effects()) {
    if (const auto* start = std::get_if<StartChild>(&effect))
      localities[start->child.str()] =
          start->update.endpoints->priorities.front().localities.size();
  }
  CHECK(localities == std::map<std::string, std::size_t>{{"ghost", 0}, {"x", 1}});
}

TEST_CASE("weighted_target: only the locality that changed is told", "[lb][weighted_target]") {
  XdsWorld world;
  PolicyHarness policy{make_weighted_target()};
  const auto config = targets({{"x", 1}, {"y", 1}});
  policy.update(config, nullptr, endpoints_of(world, "x:a y:b"));
  const Texts done = policy.update(config, nullptr, endpoints_of(world, "x:a y:b,c"));
  // A picker is published, because the host report beside it now has three hosts.
  CHECK(done == Texts{"update y", "publish CONNECTING"});
  CHECK(policy.applied("x", 1).empty());
  CHECK(policy.applied("y", 2) == Texts{"applied 2"});
}

// --- zone-aware -----------------------------------------------------------------

namespace {

LbConfigPtr zone_aware(const std::vector<std::string>& zones,
                       const ZoneAware& rules = {},
                       const std::string& caller = "a") {
  WeightedTargetConfig config;
  for (const std::string& zone : zones) {
    config.targets[ChildName(zone)] = {
        1, make_lb_config(RoundRobinConfig{}), LocalityName{"", zone, ""}};
  }
  config.zone_aware = rules;
  config.caller = {"", caller, ""};
  return make_lb_config(std::move(config));
}

/// The target is READY, or in another state, and has this many fit endpoints of four.
void tell(PolicyHarness& policy,
          const std::string& child,
          std::uint64_t fit,
          ConnectivityState state = kReady) {
  policy.step(ChildStateChanged{ChildName(child),
                                state,
                                state == kFailure ? absl::UnavailableError("no") : absl::OkStatus(),
                                named_picker(child),
                                policy.generation(),
                                fit_of({fit, fit}, {4, 4})});
  policy.step(RebuildDue{});
}

int calls_to(const PolicyHarness& policy, const std::string& child) {
  const auto counts = answers(policy, 10'000);
  const auto found = counts.find("fail UNAVAILABLE: " + child);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

TEST_CASE(
    "weighted_target: zone-aware, calls stay in the caller's zone, and spill over by capacity",
    "[lb][weighted_target][zone_split][ENV-34][ENV-35]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(zone_aware({"a", "b", "c"}));
  // Until six endpoints are fit, weights decide.
  tell(policy, "b", 4);
  CHECK(calls_to(policy, "b") == 10'000);
  tell(policy, "a", 4);
  tell(policy, "c", 4);
  CHECK(calls_to(policy, "a") == 10'000);
  tell(policy, "a", 2);
  CHECK(calls_to(policy, "a") == Approx(6'000).margin(250));
  CHECK(calls_to(policy, "b") == Approx(2'000).margin(200));
  tell(policy, "a", 0, kFailure);
  CHECK(calls_to(policy, "a") == 0);
  CHECK(calls_to(policy, "c") == Approx(5'000).margin(250));
  // While the zone connects again, it gets no calls: others can take them.
  tell(policy, "a", 4, kConnecting);
  CHECK(calls_to(policy, "a") == 0);
  tell(policy, "a", 4);
  CHECK(calls_to(policy, "a") == 10'000);
}

TEST_CASE("weighted_target: zone-aware, a count that changes no share is a new picker all the same",
          "[lb][weighted_target][zone_split]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(zone_aware({"a", "b"}));
  tell(policy, "a", 4);
  tell(policy, "b", 4);
  const PickerPtr before = policy.published()->picker;
  const HostReportPtr same = fit_of({4, 4}, {4, 4});
  // A child that says the same again makes none.
  CHECK(policy
            .step(ChildStateChanged{
                ChildName("x"), kReady, {}, named_picker("x"), policy.generation(), same})
            .empty());
  tell(policy, "b", 3);
  CHECK(calls_to(policy, "a") == 10'000);
}

TEST_CASE("weighted_target: zone-aware, the last zone that can take calls gets all",
          "[lb][weighted_target][zone_split][ENV-36]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(zone_aware({"a", "b"}, {.min_cluster_size = 1}));
  tell(policy, "a", 4, kFailure);
  tell(policy, "b", 1);
  CHECK(calls_to(policy, "b") == 10'000);
  // In panic no endpoint is fit, and calls go to all by weight.
  tell(policy, "a", 0);
  tell(policy, "b", 0);
  CHECK(calls_to(policy, "a") == Approx(5'000).margin(250));
  CHECK(calls_to(policy, "b") == Approx(5'000).margin(250));
}

TEST_CASE("weighted_target: explanations say what stays in the zone",
          "[lb][weighted_target][zone_split]") {
  PolicyHarness policy{make_weighted_target()};
  policy.update(zone_aware({"a", "b"}));
  tell(policy, "a", 2);
  tell(policy, "b", 4);

  class Trace final : public PickTrace {
   public:
    void tell(PickStep step) override { steps.push_back(std::move(step)); }

    std::vector<PickStep> steps;
  };

  Trace trace;
  policy.published()->picker->explain({.seed = 7}, trace);
  REQUIRE_FALSE(trace.steps.empty());
  CHECK_THAT(trace.steps.front().reason,
             Catch::EndsWith("; zone-aware: 66.66 % of the calls stay in zone a"));
  tell(policy, "a", 4);
  trace.steps.clear();
  policy.published()->picker->explain({.seed = 7}, trace);
  REQUIRE(trace.steps.size() >= 2);
  for (std::size_t at = 0; at < 2; ++at)
    CHECK(trace.steps[at].reason == "zone-aware: 100 % of the calls stay in zone a");
}

TEST_CASE("wrr_locality: a zone-aware policy hands the rule and the caller on",
          "[lb][wrr_locality][zone_split]") {
  PolicyOptions options;
  options.caller = {"", "a", ""};
  PolicyHarness policy{make_wrr_locality(options)};
  const ZoneAware rules{.min_cluster_size = 2};
  policy.update(make_lb_config(WrrLocalityConfig{make_lb_config(RoundRobinConfig{}), rules}),
                nullptr,
                nullptr);
  const auto& start = std::get<StartChild>(policy.effects().front());
  const auto& config = std::get<WeightedTargetConfig>(*start.update.config);
  CHECK(config.zone_aware == rules);
  CHECK(config.caller == options.caller);
}
