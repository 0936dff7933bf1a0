// SPDX-License-Identifier: Apache-2.0
//
// gRFC A68, "random_subsetting", in the document's order.
//
// Not here:
//   - "xDS Integration": tests/unit/xds/parse_lb_policy_test has it.
//   - The document hashes with MurmurHash3 and a salt of 32 bytes. Signalbox hashes with XXH64 and
//     a seed of 64 bits. With both, each endpoint is as likely to be chosen as any other.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/health/spread.hpp"
#include "lb/tree/random_subsetting.hpp"
#include "tests/support/property.hpp"
#include "tests/support/step_log.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox {
namespace {

using namespace lb;
using Strings = std::vector<std::string>;

Strings names(std::size_t count) {
  Strings all;
  for (std::size_t number = 0; number < count; ++number)
    all.push_back(absl::StrCat("10.0.0.", number, ":80"));
  return all;
}

std::set<std::string> addresses(const EndpointsPtr& endpoints) {
  std::set<std::string> found;
  for (const Priority& priority : endpoints->priorities) {
    for (const LocalityPtr& locality : priority.localities) {
      for (const Endpoint& endpoint : locality->endpoints)
        found.insert(endpoint.addresses.front().str());
    }
  }
  return found;
}

std::set<std::string> subset(const Strings& all, std::size_t size, std::uint64_t seed) {
  return addresses(choose_subset(slice_of(all), size, seed));
}

LbConfigPtr subsetting(std::uint32_t size) {
  return make_lb_config(RandomSubsettingConfig{size, make_lb_config(RoundRobinConfig{})});
}

ConfigUpdated update_of(const LbConfigPtr& config, EndpointsPtr endpoints, Generation generation) {
  ConfigUpdated update;
  update.generation = generation;
  update.config = config;
  update.endpoints = std::move(endpoints);
  return update;
}

// The update for the child among these effects; null: there is no update.
const ConfigUpdated* given(const LbEffects& effects) {
  for (const LbEffect& effect : effects) {
    if (const auto* start = std::get_if<StartChild>(&effect)) return &start->update;
    if (const auto* update = std::get_if<UpdateChild>(&effect)) return &update->update;
  }
  return nullptr;
}

}  // namespace

// --- "Subsetting algorithm" --------------------------------------------------------------------

TEST_CASE("A68: a subset has subset_size endpoints, or all if there are no more",
          "[spec][lb][A68]") {
  const auto all = names(10);
  CHECK(subset(all, 3, 1).size() == 3);
  CHECK(subset(all, 9, 1).size() == 9);
  const EndpointsPtr list = slice_of(all);
  CHECK(choose_subset(list, 10, 1) == list);
  CHECK(choose_subset(list, 4'294'967'295, 1) == list);
  CHECK(choose_subset(nullptr, 3, 1) == nullptr);
}

TEST_CASE("A68: the order of the list does not matter, the seed does", "[spec][lb][A68]") {
  auto all = names(50);
  const auto chosen = subset(all, 7, 42);
  std::ranges::reverse(all);
  CHECK(subset(all, 7, 42) == chosen);
  CHECK(subset(all, 7, 43) != chosen);
}

TEST_CASE("A68: clients with different seeds use all endpoints alike", "[spec][lb][A68]") {
  constexpr int kClients = 5'000;
  const auto all = names(40);
  std::map<std::string, int> clients;
  for (std::uint64_t seed = 0; seed < kClients; ++seed) {
    for (const std::string& address : subset(all, 8, draw(seed, Salt::kSubset)))
      ++clients[address];
  }
  // Each endpoint expects 1,000 of the clients, with a standard deviation of 28.
  CHECK(clients.size() == 40);
  for (const auto& [address, count] : clients) {
    CAPTURE(address, count);
    CHECK(std::abs(count - 1'000) < 140);
  }
}

TEST_CASE("A68: one endpoint more or less changes at most one endpoint of the subset",
          "[spec][lb][A68][property]") {
  CHECK(test::holds("little churn", 500, [](std::uint64_t seed, std::uint8_t pick) {
    auto all = names(30);
    const auto before = subset(all, 6, seed);
    all.erase(all.begin() + pick % 30);
    const auto after = subset(all, 6, seed);
    std::size_t kept = 0;
    for (const std::string& address : before)
      kept += after.count(address);
    RC_ASSERT(kept >= 5U);
  }));
}

// --- "Handling Parent/Resolver Updates" --------------------------------------------------------

SCENARIO("A68: the child gets the subset, and sees only changes of the subset", "[spec][lb][A68]") {
  GIVEN("a policy with 3 of 20 endpoints") {
    const auto policy = make_random_subsetting(PolicyContext{PolicyPath{"p"}, 7, nullptr});
    auto all = names(20);
    const LbEffects first = policy->step(update_of(subsetting(3), slice_of(all), 1), Instant{});
    REQUIRE(given(first) != nullptr);
    const EndpointsPtr before = given(first)->endpoints;
    CHECK(same_config(given(first)->config, make_lb_config(RoundRobinConfig{})));
    CHECK(addresses(before).size() == 3);

    WHEN("an endpoint outside the subset goes away") {
      std::erase_if(all, [&](const std::string& one) {
        return one == *std::ranges::find_if(
                          all, [&](const auto& any) { return addresses(before).count(any) == 0; });
      });
      const LbEffects second = policy->step(update_of(subsetting(3), slice_of(all), 2), Instant{});
      THEN("the child's localities are the same objects") {
        REQUIRE(given(second) != nullptr);
        CHECK(given(second)->endpoints->priorities.front().localities ==
              before->priorities.front().localities);
      }
    }
    WHEN("the configuration asks for more endpoints") {
      const LbEffects second = policy->step(update_of(subsetting(5), slice_of(all), 2), Instant{});
      THEN("the first ones stay") {
        const auto after = addresses(given(second)->endpoints);
        CHECK(after.size() == 5);
        for (const std::string& address : addresses(before))
          CHECK(after.count(address) == 1);
      }
      AND_THEN("explanations say the new number, although the child has not reported") {
        CHECK_THAT(testing::steps_of(std::get<Publish>(second.back()).picker).front(),
                   Catch::Contains("random_subsetting: uses 5 of 20 endpoints"));
      }
    }
    WHEN("the configuration asks for all endpoints") {
      const LbEffects second = policy->step(update_of(subsetting(20), slice_of(all), 2), Instant{});
      THEN("explanations do not name the policy, which has nothing to choose") {
        CHECK_THAT(testing::steps_of(std::get<Publish>(second.back()).picker).front(),
                   Catch::StartsWith("picker: "));
      }
    }
    WHEN("the configuration has no endpoints") {
      const LbEffects second = policy->step(update_of(subsetting(3), nullptr, 2), Instant{});
      THEN("the child gets none, and there is nothing to choose") {
        REQUIRE(given(second) != nullptr);
        CHECK(given(second)->endpoints == nullptr);
        CHECK_THAT(testing::steps_of(std::get<Publish>(second.back()).picker).front(),
                   Catch::StartsWith("picker: "));
      }
    }
    WHEN("a call is explained") {
      const auto& start =
          std::get<StartChild>(*std::ranges::find_if(first, [](const LbEffect& effect) {
            return std::holds_alternative<StartChild>(effect);
          }));
      const LbEffects published =
          policy->step(ChildStateChanged{start.child,
                                         ConnectivityState::kConnecting,
                                         absl::OkStatus(),
                                         std::get<Publish>(first.back()).picker,
                                         1},
                       Instant{});
      PickerPtr picker = std::get<Publish>(first.back()).picker;
      for (const LbEffect& effect : published) {
        if (const auto* publish = std::get_if<Publish>(&effect)) picker = publish->picker;
      }
      THEN("the explanation says how many endpoints are used") {
        CHECK_THAT(testing::steps_of(picker).front(),
                   Catch::Contains("random_subsetting: uses 3 of 20 endpoints"));
      }
    }
  }
}

TEST_CASE("A68: an endpoint keeps its locality, and a whole locality its pointer",
          "[spec][lb][A68]") {
  Endpoints list;
  const auto near = slice_of({"a", "b", "c", "d"})->priorities.front().localities.front();
  const auto far = slice_of({"e"})->priorities.front().localities.front();
  list.priorities.push_back({{near, far}});
  const auto all = std::make_shared<const Endpoints>(list);
  bool seen_whole = false;
  bool seen_gone = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const EndpointsPtr some = choose_subset(all, 3, seed);
    const auto& localities = some->priorities.front().localities;
    seen_gone |= localities.size() == 1;
    seen_whole |= localities.size() == 2 && localities.back() == far;
  }
  CHECK(seen_whole);
  CHECK(seen_gone);
}

TEST_CASE("A68: a plan shares out calls as the child does", "[lb][spread][A68]") {
  const auto localities = slice_of({"a", "b"})->priorities.front().localities;
  CHECK(spread_calls(subsetting(1), localities, {true, true}, 10) == std::vector<CallShare>{5, 5});
  CHECK(policy_text(subsetting(1)) == "random_subsetting, round_robin");
  CHECK(spread_note(subsetting(3)) ==
        "random_subsetting: each client uses 3 of the endpoints; on average over many clients");
}

}  // namespace signalbox
