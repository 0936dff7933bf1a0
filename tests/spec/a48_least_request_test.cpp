// SPDX-License-Identifier: Apache-2.0
//
// gRFC A48, "xDS Least Request LB Policy", in the document's order.
//
// Not here:
//   - GRPC_EXPERIMENTAL_ENABLE_LEAST_REQUEST is not read: the policy is always there.
//   - A sampled endpoint that the call has tried before is replaced by one that it has not tried.
//     The document has no such rule; tests/unit/lb/least_request_test tests it.

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/leaf/round_robin.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/property.hpp"
#include "tests/unit/lb/least_request_harness.hpp"
#include "tests/unit/xds/lb_policy_text.hpp"

namespace signalbox {
namespace {

using namespace lb;
using Strings = std::vector<std::string>;

constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kReady = ConnectivityState::kReady;
constexpr auto kFailed = ConnectivityState::kTransientFailure;

LeafHarness not_connected() {
  return LeafHarness(make_leaf(LeastRequestConfig{}, PolicyContext{PolicyPath{"p"}, 1, nullptr}));
}

}  // namespace

// --- "xDS API Fields" --------------------------------------------------------------------------

TEST_CASE("A48: choice_count is the number of draws: 2 where unset, 10 where above 10",
          "[spec][xds][parse][A48]") {
  const auto row = GENERATE(table<std::string, std::uint32_t>({
      {"", 2},
      {"choice_count { value: 2 }", 2},
      {"choice_count { value: 10 }", 10},
      {"choice_count { value: 11 }", 10},
      {"choice_count { value: 4294967295 }", 10},
  }));
  const auto& [fields, count] = row;
  CHECK(xds::config_of<LeastRequestConfig>(
            xds::list(xds::entry("least_request.v3.LeastRequest", fields)))
            .choice_count == count);
  const auto by_enum = xds::config_of<WrrLocalityConfig>(
      "lb_policy: LEAST_REQUEST least_request_lb_config { " + fields + " }");
  CHECK(same_config(by_enum.child, make_lb_config(LeastRequestConfig{count})));
}

TEST_CASE("A48: a choice_count below 2 is rejected", "[spec][xds][parse][A48]") {
  const auto count = GENERATE(as<std::string>{}, "0", "1");
  const std::string fields = "choice_count { value: " + count + " }";
  const std::string error = ".choice_count: must be at least 2, found " + count;
  CHECK(xds::error_in(xds::list(xds::entry("least_request.v3.LeastRequest", fields))) ==
        xds::kValue + error);
  CHECK(xds::error_in("lb_policy: LEAST_REQUEST least_request_lb_config { " + fields + " }") ==
        "least_request_lb_config" + error);
}

// gRPC ignores the field. Here it counts where endpoints have different weights, as in Envoy.
TEST_CASE("A48: active_request_bias refuses nothing", "[spec][xds][least_request][A48][ENV-40]") {
  // The serialised fields choice_count: 5 and active_request_bias (field 2), an empty message.
  const std::string value = R"(\n\002\010\005\022\000)";
  const std::string policy = xds::any("type_url: \"" + xds::kPolicies +
                                      "least_request.v3.LeastRequest\" value: \"" + value + "\"");
  CHECK(xds::config_of<LeastRequestConfig>(xds::list(policy)) ==
        LeastRequestConfig{5, std::nullopt, 0});
}

// --- "Changes to the xds_cluster_resolver Policy" ----------------------------------------------

TEST_CASE("A48: lb_policy LEAST_REQUEST chooses least_request below a policy that picks localities",
          "[spec][xds][least_request][A48]") {
  const auto config = xds::config_of<WrrLocalityConfig>("lb_policy: LEAST_REQUEST");
  CHECK(same_config(config.child, make_lb_config(LeastRequestConfig{2})));
}

// --- "LB Policy Config" ------------------------------------------------------------------------

TEST_CASE("A48: the policy draws as often as configured, from two to ten times",
          "[spec][lb][least_request][A48]") {
  const auto [configured, drawn] =
      GENERATE(table<std::uint32_t, int>({{0, 2}, {1, 2}, {2, 2}, {3, 3}, {10, 10}, {99, 10}}));
  Strings endpoints;
  for (int number = 0; number < 50; ++number)
    endpoints.push_back(std::to_string(number));
  LeastRequestHarness leaf(endpoints, configured);
  // All endpoints are busy except the one that only the last draw finds.
  std::uint64_t seed = 0;
  const auto last = [&] {
    std::set<std::uint64_t> seen;
    std::uint64_t at = 0;
    for (std::uint64_t step = 0; step < static_cast<std::uint64_t>(drawn); ++step) {
      at = draw_below(seed, Salt::kEndpoint, endpoints.size(), step);
      if (!seen.insert(at).second) return endpoints.size();
    }
    return static_cast<std::size_t>(at);
  };
  while (last() == endpoints.size())
    ++seed;
  const std::string idle = endpoints[last()];
  for (std::uint64_t other = 0; leaf.calls.size() < 49 || leaf.calls.contains(idle); ++other) {
    const std::string busy = leaf.begin(other);
    if (busy == idle || leaf.calls.count(busy) > 1) leaf.end_one(busy);
  }
  CHECK(leaf.where(seed) == idle);
  // With one draw less the pick would not find that endpoint.
  const std::uint64_t before_last =
      draw_below(seed, Salt::kEndpoint, endpoints.size(), static_cast<std::uint64_t>(drawn) - 2);
  CHECK(endpoints[before_last] != idle);
}

// --- "Subchannel connectivity management" ------------------------------------------------------

TEST_CASE("A48: every endpoint is connected at once, without a pick",
          "[spec][lb][least_request][A48]") {
  LeafHarness leaf = not_connected();
  leaf.update({"a", "b", "c"}, of_choices(2));
  for (const char* address : {"a", "b", "c"})
    leaf.idle(address);
  CHECK(leaf.held == std::set<std::string>{"a", "b", "c"});
  CHECK(leaf.connects == Strings{"a", "b", "c"});
  CHECK(leaf.pick() == "queue");
}

TEST_CASE("A48: a lost connection is made again, and better addresses are asked for",
          "[spec][lb][least_request][A48]") {
  LeastRequestHarness leaf({"a", "b"});
  leaf.connects.clear();
  leaf.idle("a");
  CHECK(leaf.connects == Strings{"a"});
  leaf.step(RebuildDue{});
  CHECK(leaf.reresolutions == 1);
  CHECK(leaf.state() == kReady);
}

// --- "Aggregated Connectivity State" -----------------------------------------------------------

TEST_CASE("A48: the aggregated state is round_robin's, for all states of one to three endpoints",
          "[spec][lb][least_request][A48]") {
  const std::string letters = "icrf";  // IDLE, CONNECTING, READY, TRANSIENT_FAILURE.
  for (std::size_t count = 1; count <= 3; ++count) {
    for (std::size_t number = 0; number < std::size_t{1} << (2 * count); ++number) {
      std::string states;
      Strings names;
      for (std::size_t at = 0; at < count; ++at) {
        states += letters[(number >> (2 * at)) % 4];
        names.push_back(std::to_string(at));
      }
      CAPTURE(states);
      const auto state_of = [&](LeafHarness leaf, const LbConfigPtr& config) {
        leaf.update(names, config);
        for (std::size_t at = 0; at < count; ++at) {
          leaf.idle(names[at]);
          if (states[at] == 'c') leaf.connecting(names[at]);
          if (states[at] == 'r') leaf.ready(names[at]);
          if (states[at] == 'f') leaf.fail(names[at]);
        }
        return leaf.state();
      };
      const auto has = [&](char state) { return states.find(state) != std::string::npos; };
      const auto expected = has('r') ? kReady : has('c') || has('i') ? kConnecting : kFailed;
      CHECK(state_of(not_connected(), of_choices(2)) == expected);
      CHECK(state_of(LeafHarness(
                         make_leaf(RoundRobinConfig{}, PolicyContext{PolicyPath{"p"}, 1, nullptr})),
                     make_lb_config(RoundRobinConfig{})) == expected);
    }
  }
}

TEST_CASE("A48: an endpoint that failed counts as failed until it is READY",
          "[spec][lb][least_request][A48]") {
  LeafHarness leaf = not_connected();
  leaf.update({"a"}, of_choices(2));
  leaf.idle("a");
  leaf.fail("a");
  for (int attempt = 0; attempt < 3; ++attempt) {
    leaf.idle("a");
    CHECK(leaf.state() == kFailed);
    leaf.connecting("a");
    CHECK(leaf.state() == kFailed);
    leaf.fail("a");
    CHECK(leaf.state() == kFailed);
  }
  leaf.ready("a");
  CHECK(leaf.state() == kReady);
}

// --- "Outstanding request counters" ------------------------------------------------------------

TEST_CASE("A48: counters belong to one instance of the policy", "[spec][lb][least_request][A48]") {
  LeastRequestHarness one({"a", "b"});
  const LeastRequestHarness other({"a", "b"});
  const std::uint64_t seed = seed_that_draws("ab");
  one.begin(seed);
  CHECK(one.where(seed) == "b");
  CHECK(other.where(seed) == "a");
}

TEST_CASE("A48: a call counts from its pick until it ends, however it ends",
          "[spec][lb][least_request][A48]") {
  LeastRequestHarness leaf({"a", "b"});
  const std::uint64_t seed = seed_that_draws("ab");
  leaf.begin(seed);
  CHECK(leaf.where(seed) == "b");
  leaf.end_one("a");
  CHECK(leaf.where(seed) == "a");
  leaf.begin(seed);
  leaf.calls.clear();  // The call ends before it reaches its endpoint.
  CHECK(leaf.where(seed) == "a");
}

TEST_CASE("A48: an endpoint keeps its counter while it is in the list",
          "[spec][lb][least_request][A48]") {
  LeastRequestHarness leaf({"a", "b"});
  const std::uint64_t seed = seed_that_draws("ab");
  leaf.begin(seed);
  SECTION("a list that keeps the endpoint") {
    leaf.update({"a", "b", "c"}, of_choices(2));
    leaf.step(RebuildDue{});
    CHECK(leaf.where(seed) == "b");
  }
  SECTION("a connection lost and made again") {
    leaf.idle("a");
    leaf.ready("a");
    leaf.step(RebuildDue{});
    CHECK(leaf.where(seed) == "b");
  }
  SECTION("but not when the endpoint goes and comes again") {
    leaf.update({"b"}, of_choices(2));
    leaf.update({"a", "b"}, of_choices(2));
    leaf.ready("a");
    leaf.step(RebuildDue{});
    CHECK(leaf.where(seed) == "a");
    leaf.calls.clear();
  }
}

// --- "Picker Behavior" -------------------------------------------------------------------------

TEST_CASE(
    "A48: a pick takes the endpoint with the fewest calls of those sampled, the first of equals",
    "[spec][lb][least_request][A48]") {
  LeastRequestHarness leaf({"a", "b"});
  const std::uint64_t first_a = seed_that_draws("ab");
  const std::uint64_t first_b = seed_that_draws("ba");
  CHECK(leaf.where(first_a) == "a");
  CHECK(leaf.where(first_b) == "b");

  CHECK(leaf.begin(first_a) == "a");
  CHECK(leaf.where(first_a) == "b");
  CHECK(leaf.where(first_b) == "b");
  CHECK(leaf.begin(first_a) == "b");
  CHECK(leaf.where(first_a) == "a");
  CHECK(leaf.where(first_b) == "b");
  // An endpoint that both draws choose gets the call, however busy it is.
  leaf.begin(seed_that_draws("aa"));
  CHECK(leaf.where(seed_that_draws("aa")) == "a");
  CHECK(leaf.where(first_a) == "b");
}

TEST_CASE("A48: only READY endpoints are sampled", "[spec][lb][least_request][A48]") {
  LeastRequestHarness leaf({"a", "b", "c", "d"});
  leaf.idle("b");
  leaf.fail("d");
  leaf.step(RebuildDue{});
  std::set<std::string> picked;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    picked.insert(leaf.where(seed));
  CHECK(picked == std::set<std::string>{"a", "c"});
}

TEST_CASE("A48: endpoints without calls get equal shares", "[spec][lb][least_request][A48][S5]") {
  CHECK(test::holds("equal shares", 1'000, [] {
    const auto count = *rc::gen::inRange(2, 8);
    Strings endpoints;
    for (int number = 0; number < count; ++number)
      endpoints.push_back(std::to_string(number));
    const LeastRequestHarness leaf(endpoints, *rc::gen::inRange<std::uint32_t>(2, 11));
    const auto first = *rc::gen::arbitrary<std::uint64_t>();
    constexpr int kPicks = 500;
    std::map<std::string, int> shares;
    for (int pick = 0; pick < kPicks; ++pick)
      ++shares[leaf.where(first + static_cast<std::uint64_t>(pick))];
    const double share = double{kPicks} / count;
    for (const std::string& endpoint : endpoints)
      RC_ASSERT(std::abs(shares[endpoint] - share) <= 6 * std::sqrt(share));
  }));
}

TEST_CASE("A48: an endpoint that answers slowly gets fewer calls",
          "[spec][lb][least_request][A48][S5]") {
  LeastRequestHarness leaf({"slow", "a", "b", "c"});
  std::map<std::string, int> begun;
  for (std::uint64_t round = 0; round < 2'000; ++round) {
    const std::string address = leaf.begin(round);
    ++begun[address];
    // Calls to other endpoints end at once. A call to "slow" ends only in every eighth round.
    if (address != "slow") leaf.end_one(address);
    if (round % 8 == 0 && leaf.calls.contains("slow")) leaf.end_one("slow");
  }
  CHECK(begun["slow"] < begun["a"] / 2);
  CHECK(begun["slow"] > 0);
}

// --- "Duplicate addresses in resolution result" ------------------------------------------------

TEST_CASE("A48: an address that is listed twice has one connection and one share",
          "[spec][lb][least_request][A48]") {
  LeafHarness leaf = not_connected();
  CHECK(count_of<AcquireSubchannel>(leaf.update({"a", "a", "b"}, of_choices(2))) == 2);
  leaf.ready("a");
  leaf.ready("b");
  leaf.step(RebuildDue{});
  constexpr int kPicks = 1'000;
  int of_a = 0;
  for (std::uint64_t seed = 0; seed < kPicks; ++seed) {
    const PickResult result = leaf.published.back().picker->pick({.seed = seed});
    if (std::get<Complete>(result.outcome).connection->address() == Address("a")) ++of_a;
  }
  CHECK(std::abs(of_a - kPicks / 2) < 6 * std::sqrt(kPicks / 4.0));
}

}  // namespace signalbox
