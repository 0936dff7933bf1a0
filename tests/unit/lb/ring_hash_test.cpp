// SPDX-License-Identifier: Apache-2.0
//
// ring_hash beyond its gRFCs. tests/spec has their rules (a42_ring_hash_test,
// a76_ring_hash_keys_test).
#include "lb/leaf/ring_hash.hpp"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "lb/xx_hash.hpp"
#include "tests/support/printed.hpp"
#include "tests/unit/lb/ring_hash_harness.hpp"

namespace signalbox::lb {
namespace {

using Strings = std::vector<std::string>;
constexpr auto kIdle = ConnectivityState::kIdle;
constexpr auto kConnecting = ConnectivityState::kConnecting;
constexpr auto kReady = ConnectivityState::kReady;
constexpr auto kFailed = ConnectivityState::kTransientFailure;

// --- connecting ------------------------------------------------------------

TEST_CASE("ring_hash: an ask of what is not there is dropped, a second one changes nothing",
          "[lb][ring_hash]") {
  RingHashHarness leaf(kAbc);
  CHECK(leaf.want("x").empty());
  leaf.want("a");
  CHECK(leaf.want("a").empty());
}

TEST_CASE("ring_hash: an order to leave IDLE connects one endpoint", "[lb][ring_hash]") {
  RingHashHarness leaf(kAbc);
  leaf.step(IdleExitRequested{});
  CHECK(leaf.held.size() == 1);
  CHECK(leaf.state() == kConnecting);
  leaf.step(IdleExitRequested{});
  CHECK(leaf.held.size() == 1);
}

// --- picks -----------------------------------------------------------------

TEST_CASE("ring_hash: without endpoints it fails clearly", "[lb][ring_hash][A42]") {
  RingHashHarness leaf(kAbc);
  leaf.bring({{"a", 'r'}});
  leaf.list(Strings{});
  CHECK(leaf.held.empty());
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.answer(kHash) == "fail: ring_hash: no endpoints");
  leaf.list(kAbc);
  CHECK(leaf.state() == kIdle);
}

TEST_CASE("ring_hash: a pick says which endpoint it chose", "[lb][ring_hash][A61]") {
  RingHashHarness leaf(kAbc);
  leaf.bring({{"b", 'r'}});
  const PickResult result = leaf.ask({.hash = xx_hash("b_0")});
  const auto& complete = std::get<Complete>(result.outcome);
  REQUIRE(complete.endpoint != nullptr);
  CHECK(complete.endpoint->endpoint->addresses.front() == Address("b"));
}

// --- the ring --------------------------------------------------------------

TEST_CASE("ring_hash: an endpoint without a point on the ring does not count",
          "[lb][ring_hash][A42]") {
  PolicyOptions options;
  options.ring_size_cap = 2;
  RingHashHarness leaf(options);
  leaf.config.min_ring_size = 1024;
  leaf.list(Strings{"a", "b", "c", "d"});  // On the ring: a and c.
  const std::string why = "ring_hash: all 2 endpoints failed; last error: c: refused by c";

  SECTION("it is not connected unasked") {
    leaf.step(IdleExitRequested{});
    CHECK(leaf.held == std::set<std::string>{"a"});
    leaf.bring({{"a", 'f'}});
    CHECK(leaf.held == std::set<std::string>{"a", "c"});
    CHECK(leaf.state() == kConnecting);
    leaf.bring({{"c", 'f'}});
    CHECK(leaf.held == std::set<std::string>{"a", "c"});
    CHECK(leaf.state() == kFailed);
    CHECK(leaf.published.back().status == absl::UnavailableError(why));
  }
  SECTION("it is neither READY, nor a failure, for the policy") {
    leaf.bring({{"b", 'r'}});
    CHECK(leaf.state() == kIdle);
    leaf.bring({{"a", 'f'}, {"c", 'f'}});
    CHECK(leaf.state() == kFailed);
    CHECK(leaf.answer(kHash) == "fail: " + why);
    CHECK(leaf.answer(PickArgs{}) == "fail: " + why);
    leaf.bring({{"d", 'f'}});
    CHECK(leaf.published.back().status == absl::UnavailableError(why));
    leaf.ready("c");  // b is READY and listed before c, but has no point on the ring.
    CHECK(leaf.state() == kReady);
    CHECK(leaf.answer(kHash) == "complete c");
  }
  SECTION("until a list gives it one, and from when a list takes it away") {
    leaf.bring({{"b", 'r'}, {"d", 'f'}});
    CHECK(leaf.state() == kIdle);
    leaf.list(Strings{"b", "d"});
    leaf.settle();
    CHECK(leaf.state() == kReady);
    CHECK(leaf.answer(kHash) == "complete b");
    leaf.idle("b");
    CHECK(leaf.state() == kConnecting);
    leaf.list(Strings{"d"});
    CHECK(leaf.state() == kFailed);
    CHECK(leaf.published.back().status.message() ==
          "ring_hash: the only endpoint failed; last error: d: refused by d");
    leaf.list(Strings{"a", "c", "d"});
    leaf.settle();
    CHECK(leaf.state() == kIdle);
  }
}

TEST_CASE("ring_hash: a list or a configuration that says the same changes nothing",
          "[lb][ring_hash]") {
  RingHashHarness leaf(kAbc);
  leaf.bring({{"a", 'r'}});
  CHECK(leaf.list(kAbc).size() == 1);  // The only effect is ReportApplied.
  const std::size_t published = leaf.published.size();

  leaf.config.max_ring_size = 4096;  // 4096 is the default size cap, so the ring stays as it is.
  CHECK(leaf.list(kAbc).size() == 1);
  leaf.config.min_ring_size = 2048;
  leaf.list(kAbc);
  leaf.settle();
  CHECK(leaf.published.size() == published + 1);
  leaf.config.request_hash_header = "session";
  leaf.list(kAbc);
  leaf.settle();
  CHECK(leaf.published.size() == published + 2);
}

TEST_CASE("ring_hash: an endpoint that stays keeps its connection and its keys",
          "[lb][ring_hash][A42][A61]") {
  RingHashHarness leaf(kAbc);
  leaf.config.min_ring_size = leaf.config.max_ring_size = 1;
  leaf.bring({{"a", 'r'}, {"b", 'r'}, {"c", 'r'}});
  const LbEffects effects = leaf.list(Strings{"c", "a"});
  CHECK(count_of<AcquireSubchannel>(effects) == 0);
  CHECK(count_of<ReleaseSubchannel>(effects) == 1);
  leaf.settle();
  CHECK(leaf.state() == kReady);
}

TEST_CASE("ring_hash: a burst of 10,000 costs one picker", "[lb][ring_hash][scale]") {
  Strings endpoints;
  for (int number = 0; number < 10'000; ++number)
    endpoints.push_back(absl::StrCat("e", number));
  RingHashHarness leaf(endpoints);
  for (const std::string& endpoint : endpoints)
    leaf.want(endpoint);
  leaf.settle();
  const std::size_t published = leaf.published.size();
  for (const std::string& endpoint : endpoints)
    leaf.ready(endpoint);
  leaf.settle();
  CHECK(leaf.published.size() == published + 2);  // The first READY at once, the others together.
}

}  // namespace
}  // namespace signalbox::lb
