// SPDX-License-Identifier: Apache-2.0
#include "lb/health/spread.hpp"

#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

using Shares = std::vector<CallShare>;

LocalityPtr locality(const std::string& zone,
                     std::uint32_t weight,
                     const std::vector<std::uint32_t>& endpoints) {
  Locality locality{{"", zone, ""}, weight, {}};
  for (const std::uint32_t of : endpoints)
    locality.endpoints.push_back({.addresses = {Address(zone)}, .weight = of});
  return std::make_shared<const Locality>(std::move(locality));
}

LbConfigPtr by_locality(LbConfigPtr child) {
  return make_lb_config(WrrLocalityConfig{std::move(child)});
}

const LbConfigPtr kRoundRobin = make_lb_config(RoundRobinConfig{});
const std::vector<bool> kAll{true, true, true};

TEST_CASE("spread: localities by weight, endpoints in them alike", "[lb][spread][A52]") {
  const std::vector<LocalityPtr> localities{locality("a", 3, {1, 9}), locality("b", 1, {5})};
  CHECK(spread_calls(by_locality(kRoundRobin), localities, kAll, 400) == Shares{150, 150, 100});
  // The weight of a locality without a usable endpoint does not count.
  CHECK(spread_calls(by_locality(kRoundRobin), localities, {true, true, false}, 400) ==
        Shares{200, 200, 0});
  CHECK(spread_calls(by_locality(kRoundRobin), localities, {false, true, true}, 400) ==
        Shares{0, 300, 100});
  CHECK(spread_calls(by_locality(kRoundRobin), localities, {false, false, false}, 400) ==
        Shares{0, 0, 0});
}

TEST_CASE("spread: each policy by its own rule", "[lb][spread][A42][A48][A62][A113]") {
  const std::vector<LocalityPtr> localities{locality("a", 3, {1, 9}), locality("b", 1, {5})};
  CHECK(spread_calls(kRoundRobin, localities, kAll, 300) == Shares{100, 100, 100});
  CHECK(spread_calls(nullptr, localities, kAll, 300) == Shares{100, 100, 100});
  CHECK(spread_calls(make_lb_config(LeastRequestConfig{}), localities, kAll, 300) ==
        Shares{100, 100, 100});
  const auto ring = make_lb_config(RingHashConfig{});
  CHECK(spread_calls(ring, localities, kAll, 4000) == Shares{300, 2700, 1000});
  CHECK(spread_calls(ring, localities, {true, false, true}, 1300) == Shares{300, 0, 1000});
  const auto first = make_lb_config(PickFirstConfig{});
  CHECK(spread_calls(first, localities, kAll, 300) == Shares{300, 0, 0});
  CHECK(spread_calls(first, localities, {false, true, true}, 300) == Shares{0, 300, 0});
  CHECK(spread_calls(make_lb_config(PickFirstConfig{true}), localities, kAll, 4000) ==
        Shares{300, 2700, 1000});
  CHECK(spread_calls(by_locality(first), localities, kAll, 400) == Shares{300, 0, 100});
}

TEST_CASE("spread: says what is not known", "[lb][spread]") {
  CHECK(spread_note(by_locality(kRoundRobin)).empty());
  CHECK(policy_text(by_locality(kRoundRobin)) == "wrr_locality, round_robin");
  CHECK(policy_text(nullptr).empty());
  CHECK_THAT(spread_note(make_lb_config(RingHashConfig{})),
             Catch::Matchers::StartsWith("ring_hash: by weight"));
  CHECK_THAT(spread_note(by_locality(make_lb_config(PickFirstConfig{}))),
             Catch::Matchers::StartsWith("pick_first: each client"));
  CHECK_THAT(spread_note(make_lb_config(PickFirstConfig{true})),
             Catch::Matchers::StartsWith("pick_first, shuffled"));
  CHECK_THAT(spread_note(make_lb_config(CustomConfig{"mine", "{}"})),
             Catch::Matchers::StartsWith("mine: only the policy knows"));
}

TEST_CASE("spread: a plan draws slow start", "[lb][spread][A100]") {
  const SlowStart minute;
  const std::string drawn =
      "slow start: an endpoint that becomes READY has ▁▂▃▄▅▆▇█ 10 % of its weight at first, 25 % "
      "after 15 s, 50 % after 30 s, 75 % after 45 s, all of it after 60 s; shares are those after "
      "it";
  CHECK(spread_note(by_locality(make_lb_config(RoundRobinConfig{minute}))) ==
        "round_robin: " + drawn);
  CHECK(spread_note(make_lb_config(LeastRequestConfig{2, minute})) == "least_request: " + drawn);
  WeightedRoundRobinConfig weighted;
  weighted.slow_start = minute;
  CHECK(spread_note(make_lb_config(weighted)) ==
        "weighted_round_robin: as if all endpoints reported the same load; real shares follow "
        "their load reports; " +
            drawn);
}

TEST_CASE("spread: a zone-aware policy keeps the caller's calls in its zone",
          "[lb][spread][zone_split][ENV-34]") {
  const std::vector<LocalityPtr> localities{locality("a", 1, {1, 1}),
                                            locality("b", 1, {1, 1, 1, 1})};
  const auto policy = make_lb_config(WrrLocalityConfig{kRoundRobin, ZoneAware{}});
  const std::vector<bool> all(6, true);
  const auto at = [&](const std::string& zone) {
    return spread_calls(policy, localities, all, 600, {"", zone, ""});
  };
  CHECK(at("a") == Shares{200, 200, 50, 50, 50, 50});
  CHECK(at("b") == Shares{0, 0, 150, 150, 150, 150});
  CHECK(at("") == Shares{150, 150, 75, 75, 75, 75});
  CHECK_THAT(spread_note(policy), Catch::StartsWith("zone-aware: calls stay in the caller's zone"));
}

TEST_CASE("spread: with a basis of weights a zone's capacity is the weights of its endpoints",
          "[lb][spread][zone_split][ENV-42]") {
  const std::vector<LocalityPtr> localities{locality("a", 1, {2, 2}),
                                            locality("b", 1, {1, 1, 1, 1})};
  const auto policy =
      make_lb_config(WrrLocalityConfig{kRoundRobin, ZoneAware{.basis = ZoneBasis::kWeights}});
  const std::vector<bool> takes(6, true);
  CHECK(spread_calls(policy, localities, takes, 600, {"", "a", ""}) ==
        Shares{300, 300, 0, 0, 0, 0});
  CHECK(spread_note(policy) ==
        "zone-aware: calls stay in the caller's zone while it has its share of the endpoints' "
        "weights, for callers in equal numbers in each zone");
}

TEST_CASE("spread: with force_local_zone a zone with enough endpoints keeps all calls",
          "[lb][spread][zone_split][ENV-43]") {
  const std::vector<LocalityPtr> localities{locality("a", 1, {1, 1}),
                                            locality("b", 1, {1, 1, 1, 1})};
  const auto policy = make_lb_config(WrrLocalityConfig{kRoundRobin, ZoneAware{.force_from = 2}});
  const std::vector<bool> takes(6, true);
  CHECK(spread_calls(policy, localities, takes, 600, {"", "a", ""}) ==
        Shares{300, 300, 0, 0, 0, 0});
  CHECK(spread_note(policy) ==
        "zone-aware: calls stay in the caller's zone while it has at least 2 endpoints "
        "(force_local_zone), or its share of the endpoints, for callers in equal numbers in each "
        "zone");
}

TEST_CASE("spread: the note of subsets has the note of their policy, too", "[lb][spread]") {
  const std::vector<LocalityPtr> localities{locality("a", 3, {1, 9}), locality("b", 1, {5})};
  const auto ring = make_lb_config(RandomSubsettingConfig{2, make_lb_config(RingHashConfig{})});
  CHECK(spread_calls(ring, localities, kAll, 4000) == Shares{300, 2700, 1000});
  CHECK(spread_note(ring) ==
        "random_subsetting: each client uses 2 of the endpoints; on average over many clients; "
        "ring_hash: by weight; what the calls' keys make of it is not known here");
}

TEST_CASE("spread: a note has the rule for zones, and what is not known of the policy in a zone",
          "[lb][spread][zone_split]") {
  const auto policy = make_lb_config(
      WrrLocalityConfig{make_lb_config(PickFirstConfig{}), ZoneAware{.force_from = 0}});
  CHECK(spread_note(policy) ==
        "zone-aware: calls stay in the caller's zone while it has at least 1 endpoints "
        "(force_local_zone), or its share of the endpoints, for callers in equal numbers in each "
        "zone; pick_first: each client stays with the first endpoint that connects");
}

TEST_CASE("spread: a policy, or one below it, can say that calls fail in panic",
          "[lb][spread][ENV-38]") {
  CHECK_FALSE(fails_in_panic(nullptr));
  CHECK_FALSE(fails_in_panic(kRoundRobin));
  CHECK_FALSE(fails_in_panic(by_locality(kRoundRobin)));
  CHECK_FALSE(fails_in_panic(make_lb_config(WrrLocalityConfig{kRoundRobin, ZoneAware{}})));
  const auto fails = make_lb_config(WrrLocalityConfig{kRoundRobin, std::nullopt, true});
  CHECK(fails_in_panic(fails));
  CHECK(fails_in_panic(make_lb_config(RandomSubsettingConfig{2, fails})));
  CHECK(fails_in_panic(by_locality(fails)));
  CHECK(fails_in_panic(by_locality(make_lb_config(RandomSubsettingConfig{2, fails}))));
}

TEST_CASE("spread: with active_request_bias least_request spreads idle calls by weight",
          "[lb][spread][ENV-40]") {
  const std::vector<LocalityPtr> localities{locality("a", 7, {1, 2}), locality("b", 1, {3})};
  LeastRequestConfig config;
  CHECK(spread_calls(make_lb_config(config), localities, kAll, 600) == Shares{200, 200, 200});
  config.active_request_bias = 1.5;
  CHECK(spread_calls(make_lb_config(config), localities, kAll, 600) == Shares{100, 200, 300});
  CHECK(spread_note(make_lb_config(config)) ==
        "least_request: by weight while no calls are in flight; active_request_bias is 1.5");
}

}  // namespace
}  // namespace signalbox::lb
