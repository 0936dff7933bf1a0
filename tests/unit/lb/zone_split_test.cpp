// SPDX-License-Identifier: Apache-2.0
//
// Zone-aware routing: the shares of localities, by Envoy's arithmetic.
#include "lb/health/zone_split.hpp"

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/property.hpp"

namespace signalbox::lb {
namespace {

using Shares = std::vector<CallShare>;

// A locality "a" or, with a sub-zone, "a/1".
struct Place {
  std::string name;
  std::uint64_t fit = 0;
  std::uint32_t weight = 1;
  std::uint64_t fit_weight = 0;
};

LocalityName named(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return {"north", text, ""};
  return {"north", text.substr(0, slash), text.substr(slash + 1)};
}

ZoneSplit split(const std::vector<Place>& places,
                const ZoneAware& rules = {},
                const LocalityName& caller = named("a/1")) {
  std::vector<LocalityName> names;
  names.reserve(places.size());
  std::vector<ZonePlace> all;
  all.reserve(places.size());
  for (const Place& place : places)
    all.push_back(
        {&names.emplace_back(named(place.name)), place.weight, place.fit, place.fit_weight});
  return split_by_zone(all, caller, rules);
}

struct Row {
  const char* when;
  std::vector<Place> places;
  std::uint32_t stays;
  Shares shares;
};

}  // namespace

TEST_CASE("zone_split: calls stay while the zone has its share of the endpoints",
          "[lb][zone_split][ENV-34][ENV-35]") {
  const Row row = GENERATE(values<Row>({
      {"zones of equal size", {{"a", 3}, {"b", 3}, {"c", 3}}, 10'000, {1'000'000, 0, 0}},
      {"the own zone is larger", {{"a", 8}, {"b", 1}}, 10'000, {1'000'000, 0}},
      {"the own zone is smaller, the others are equal",
       {{"a", 2}, {"b", 4}, {"c", 4}},
       6'000,
       {600'000, 200'000, 200'000}},
      {"a zone that needs all of its endpoints gets nothing more",
       {{"a", 1}, {"b", 2}, {"c", 7}},
       3'000,
       {300'000, 0, 700'000}},
      {"the own zone has no endpoint", {{"b", 3}, {"c", 3}}, 0, {500'000, 500'000}},
      {"the own zone's endpoints failed", {{"a", 0}, {"b", 3}, {"c", 3}}, 0, {0, 500'000, 500'000}},
      {"another zone's endpoints failed, and its callers are still there",
       {{"a", 3}, {"b", 3}, {"c", 0}},
       10'000,
       {1'000'000, 0, 0}},
      {"half of the own zone failed", {{"a", 2}, {"b", 4}}, 6'666, {666'600, 333'400}},
      {"the own zone has two sub-zones",
       {{"a/1", 1}, {"a/2", 3}, {"b", 4}},
       10'000,
       {250'000, 750'000, 0}},
      {"another zone has two sub-zones",
       {{"a", 2}, {"b/1", 1}, {"b/2", 3}},
       6'666,
       {666'600, 83'350, 250'050}},
  }));
  DYNAMIC_SECTION(row.when) {
    const ZoneSplit found = split(row.places);
    CHECK(found.verdict == ZoneVerdict::kHolds);
    CHECK(found.stays == row.stays);
    CHECK(found.shares == row.shares);
  }
}

TEST_CASE("zone_split: without the rule localities have shares by weight",
          "[lb][zone_split][ENV-36]") {
  const Shares by_weight{250'000, 750'000};
  SECTION("fewer fit endpoints than min_cluster_size") {
    const std::vector<Place> five{{"a", 2, 1}, {"b", 3, 3}};
    CHECK(split(five).verdict == ZoneVerdict::kTooSmall);
    CHECK(split(five).shares == by_weight);
    CHECK(split(five, {.min_cluster_size = 5}).verdict == ZoneVerdict::kHolds);
  }
  SECTION("the caller's zone is not known") {
    const std::vector<Place> six{{"a", 3, 1}, {"b", 3, 3}};
    CHECK(split(six, {}, {"north", "", ""}).verdict == ZoneVerdict::kCallerUnknown);
    CHECK(split(six, {}, {}).shares == by_weight);
  }
  SECTION("all localities are in the caller's zone") {
    const std::vector<Place> one{{"a/1", 3, 1}, {"a/2", 3, 3}};
    CHECK(split(one).verdict == ZoneVerdict::kOneZone);
    CHECK(split(one).shares == by_weight);
  }
  SECTION("a zone of this name in another region is another zone") {
    const std::vector<Place> six{{"a", 3}, {"b", 3}};
    const ZoneSplit found = split(six, {}, {"south", "a", ""});
    CHECK(found.stays == 0);
    CHECK(found.shares == Shares{500'000, 500'000});
  }
  SECTION("no endpoint is fit") {
    CHECK(split({{"a", 0}, {"b", 0}}, {.min_cluster_size = 0}).shares == Shares{0, 0});
  }
}

TEST_CASE("zone_split: routing_enabled is the part of the calls under the rule",
          "[lb][zone_split][ENV-37]") {
  const std::vector<Place> places{{"a", 2}, {"b", 4}, {"c", 4}};
  CHECK(split(places, {.routing_enabled = 0}).shares == Shares{333'334, 333'333, 333'333});
  CHECK(split(places, {.routing_enabled = 50}).shares == Shares{466'667, 266'667, 266'666});
  CHECK(split(places, {.routing_enabled = 100}).shares == Shares{600'000, 200'000, 200'000});
  CHECK(split(places, {.routing_enabled = 101}).shares == split(places).shares);
}

TEST_CASE("zone_split: with a basis of weights the weights of endpoints are the capacity",
          "[lb][zone_split][ENV-42]") {
  // Two of ten endpoints, with a third of the weight: callers are in three zones.
  const std::vector<Place> heavy{
      {"a", 2, 1, 10}, {"b/1", 3, 1, 12}, {"b/2", 1, 1, 4}, {"c", 4, 1, 4}};
  CHECK(split(heavy).stays == 6'000);
  const ZoneSplit found = split(heavy, {.basis = ZoneBasis::kWeights});
  CHECK(found.stays == 10'000);
  CHECK(found.shares == Shares{1'000'000, 0, 0, 0});
  // For a caller in c, 4 / 30 of the weight is 40 % of a third. Within b, three quarters of the
  // weight are in b/1.
  const ZoneSplit from_c = split(heavy, {.basis = ZoneBasis::kWeights}, named("c"));
  CHECK(from_c.stays == 3'999);
  CHECK(from_c.shares == Shares{0, 450'075, 150'025, 399'900});
  // min_cluster_size counts endpoints, whatever the basis.
  CHECK(split({{"a", 2, 1, 100}, {"b", 3, 1, 100}}, {.basis = ZoneBasis::kWeights}).verdict ==
        ZoneVerdict::kTooSmall);
}

TEST_CASE("zone_split: with force_local_zone a zone with enough endpoints keeps all calls",
          "[lb][zone_split][ENV-43]") {
  const std::vector<Place> places{{"a", 2}, {"b", 4}, {"c", 4}};
  const ZoneSplit forced = split(places, {.force_from = 2});
  CHECK(forced.forced);
  CHECK(forced.stays == 10'000);
  CHECK(forced.shares == Shares{1'000'000, 0, 0});
  // With fewer endpoints than that, the zone keeps the calls that it has the capacity for.
  CHECK_FALSE(split(places, {.force_from = 3}).forced);
  CHECK(split(places, {.force_from = 3}).stays == 6'000);
  CHECK(split({{"a", 0}, {"b", 6}}, {.force_from = 0}).shares == Shares{0, 1'000'000});
  // The rules around it stay.
  CHECK(split(places, {.routing_enabled = 50, .force_from = 1}).shares ==
        Shares{666'667, 166'667, 166'666});
  CHECK(split(places, {.min_cluster_size = 11, .force_from = 1}).verdict == ZoneVerdict::kTooSmall);
  CHECK(split(places, {.force_from = 1}, {}).verdict == ZoneVerdict::kCallerUnknown);
}

TEST_CASE("zone_split: the reason is told", "[lb][zone_split]") {
  const auto text = [&](const std::vector<Place>& places,
                        const ZoneAware& rules = {},
                        const LocalityName& caller = named("a")) {
    return zone_text(split(places, rules, caller), caller, rules);
  };
  CHECK(text({{"a", 2}, {"b", 4}, {"c", 4}}) == "zone-aware: 60 % of the calls stay in zone a");
  CHECK(text({{"a", 3}, {"b", 3}}, {.routing_enabled = 30}) ==
        "zone-aware: 100 % of the calls stay in zone a (routing_enabled: of 30 %)");
  CHECK(text({{"a", 2}, {"b", 4}, {"c", 4}}, {.force_from = 1}) ==
        "zone-aware: 100 % of the calls stay in zone a (force_local_zone)");
  CHECK(text({{"a", 1}, {"b", 1}}) ==
        "not zone-aware: fewer than 6 endpoints can take calls (min_cluster_size)");
  CHECK(text({{"a", 3}, {"b", 3}}, {}, {}) ==
        "not zone-aware: the node of the bootstrap has no locality with a zone");
  CHECK(text({{"a/1", 6}}) == "zone-aware: all endpoints are in zone a");
}

TEST_CASE("zone_split: all calls are divided, and only among places that can take them",
          "[lb][zone_split][ENV-35][property]") {
  const auto is_split = [] {
    const auto sizes =
        *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
    const auto routing = *rc::gen::inRange<std::uint32_t>(0, 101);
    const auto least = *rc::gen::inRange<std::uint64_t>(0, 20);
    ZoneAware rules{.routing_enabled = routing, .min_cluster_size = least};
    if (*rc::gen::arbitrary<bool>()) rules.basis = ZoneBasis::kWeights;
    if (*rc::gen::arbitrary<bool>()) rules.force_from = *rc::gen::inRange<std::uint32_t>(0, 6);
    std::vector<Place> places;
    places.reserve(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i)
      places.push_back({std::string(1, static_cast<char>('a' + i % 26)) + "/" + std::to_string(i),
                        sizes[i] % 8U,
                        1U + sizes[i] / 8U,
                        (sizes[i] % 8U) * (1U + i % 5)});
    const ZoneSplit found = split(places, rules, named("a"));
    RC_ASSERT(found.shares.size() == places.size());
    bool any = false;
    for (std::size_t i = 0; i < places.size(); ++i) {
      any |= places[i].fit > 0;
      if (places[i].fit == 0) RC_ASSERT(found.shares[i] == 0U);
    }
    const auto sum = std::accumulate(found.shares.begin(), found.shares.end(), CallShare{0});
    RC_ASSERT(sum == (any ? kAllCalls : 0));
    RC_ASSERT(found.stays <= 10'000U);
  };
  CHECK(test::holds("zones are split", 2'000, is_split));
}

}  // namespace signalbox::lb
