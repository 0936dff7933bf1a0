// SPDX-License-Identifier: Apache-2.0
//
// ring_hash beyond its gRFCs. tests/spec has their rules (a42_ring_hash_test,
// a76_ring_hash_keys_test).
#include "lb/leaf/ring_hash.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <catch2/catch.hpp>

#include "lb/xx_hash.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/step_log.hpp"
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

TEST_CASE("ring_hash: processes begin at different endpoints when no call asks",
          "[lb][ring_hash][A117]") {
  std::set<std::string> begun;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    LeafHarness leaf(make_leaf(RingHashConfig{}, PolicyContext{PolicyPath{"p"}, seed}));
    leaf.update(kAbc, make_lb_config(RingHashConfig{}));
    leaf.step(IdleExitRequested{});
    CHECK(leaf.held.size() == 1);
    begun.merge(leaf.held);
  }
  CHECK(begun == std::set<std::string>(kAbc.begin(), kAbc.end()));
}

// --- picks -----------------------------------------------------------------

TEST_CASE("ring_hash: without endpoints it fails clearly", "[lb][ring_hash][A42]") {
  RingHashHarness leaf(kAbc);
  leaf.bring({{"a", 'r'}});
  const bool has_list = GENERATE(true, false);
  leaf.configure(has_list ? slice_of({}) : nullptr, make_lb_config(leaf.config));
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
    REQUIRE(leaf.held.size() == 1);
    leaf.bring({{*leaf.held.begin(), 'f'}});
    CHECK(leaf.held == std::set<std::string>{"a", "c"});
    CHECK(leaf.state() == kConnecting);
    leaf.bring({{"a", 'f'}, {"c", 'f'}});
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

TEST_CASE("ring_hash: without weighted shuffling endpoints weigh their locality's weight times own",
          "[lb][ring_hash][A42]") {
  PolicyOptions options;
  options.weighted_shuffling = false;
  RingHashHarness leaf(options);
  leaf.list(heavy_and_light());
  leaf.bring({{"a", 'r'}, {"b", 'r'}, {"c", 'r'}});
  std::map<std::string, int> shares;
  constexpr int kCalls = 20'000;
  for (std::uint64_t call = 0; call < kCalls; ++call)
    ++shares[leaf.answer(draw(call, Salt::kDrop))];
  CHECK(shares["complete a"] == Approx(kCalls * 6 / 16.0).epsilon(0.15));
  CHECK(shares["complete b"] == Approx(kCalls * 3 / 16.0).epsilon(0.2));
  CHECK(shares["complete c"] == Approx(kCalls * 7 / 16.0).epsilon(0.15));
}

TEST_CASE("ring_hash: two of three endpoints that failed are a failure that counts them",
          "[lb][ring_hash][A42]") {
  RingHashHarness leaf(kAbc);
  leaf.bring({{"a", 'f'}, {"b", 'f'}});
  CHECK(leaf.state() == kFailed);
  CHECK(leaf.published.back().status.message() ==
        "ring_hash: 2 of 3 endpoints failed; last error: b: refused by b");
}

// --- explanations ----------------------------------------------------------

TEST_CASE("ring_hash: an explanation has the hash's origin, and counts the points passed",
          "[lb][ring_hash][explain]") {
  struct UserHeader final : HeaderSource {
    void each(absl::string_view name,
              absl::FunctionRef<void(absl::string_view)> visit) const override {
      if (name == "user") visit("ann");
    }
  };

  RingHashHarness leaf(kAbc);
  leaf.bring({{"a", 'f'}, {"b", 'r'}});
  const auto told = [&](const PickArgs& args) {
    return testing::steps_of(leaf.published.back().picker, args);
  };
  const HashRing ring({{"a", 1}, {"b", 1}, {"c", 1}}, {});
  std::size_t passed = 0;
  while (ring.item((ring.find(kHash) + passed) % ring.size()) == 0)
    ++passed;
  CHECK(told({.hash = kHash}).back() ==
        absl::StrCat("ring_hash: b; the first READY one from there; ",
                     passed,
                     " points of failed ones were passed; CDS"));
  const auto has = [](const Strings& steps, const std::string& text) {
    return std::ranges::any_of(
        steps, [&](const std::string& step) { return absl::StrContains(step, text); });
  };
  CHECK(has(told({.seed = 5}), ", by chance: nothing of it is hashed; the ring has 1026 points"));

  const UserHeader header{};
  leaf.config = by_header("user");
  leaf.list(kAbc);
  leaf.settle();
  CHECK(has(told({.headers = &header}),
            absl::StrCat("the call's hash is ", xx_hash("ann"), ", of header \"user\"; ")));
}

TEST_CASE("ring_hash: an explanation says why a call waits or fails", "[lb][ring_hash][explain]") {
  RingHashHarness leaf(kAbc);
  const auto last = [&] {
    return testing::steps_of(leaf.published.back().picker, {.hash = kHash}).back();
  };
  CHECK(last() ==
        "ring_hash: the call waits; a is where it belongs, and not connected; a pick lets it "
        "connect; CDS");
  leaf.bring({{"a", 'c'}});
  CHECK(last() == "ring_hash: the call waits; where it belongs is being connected; CDS");
  leaf.bring({{"a", 'f'}, {"b", 'f'}, {"c", 'f'}});
  CHECK(last() ==
        "ring_hash: the call fails; ring_hash: all 3 endpoints failed; last error: c: refused by "
        "c; CDS");
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
