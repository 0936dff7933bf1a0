// SPDX-License-Identifier: Apache-2.0
//
// gRFC A100 (a draft), "Client-side weighted round robin slow start configuration", and Envoy's
// slow start, which round_robin and least_request have as well.
//
// Not here: the metric of endpoints in slow start, which a58_weighted_round_robin_test has.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "lb/health/slow_start.hpp"
#include "lb/leaf/least_request.hpp"
#include "lb/leaf/round_robin.hpp"
#include "lb/leaf/weighted_round_robin.hpp"
#include "tests/support/property.hpp"
#include "tests/support/step_log.hpp"
#include "tests/unit/lb/leaf_harness.hpp"
#include "tests/unit/xds/lb_policy_text.hpp"

namespace signalbox {
namespace {

using namespace lb;
using namespace std::chrono_literals;
using Strings = std::vector<std::string>;
using Shares = std::map<std::string, int>;

const SlowStart kMinute{};  // 60 s, aggression 1, at least 10 %.

template <typename Config>
LbConfigPtr with(std::optional<SlowStart> rules) {
  Config config;
  config.slow_start = rules;
  return make_lb_config(config);
}

// A policy under test, with a clock that fires its timer.
class SlowHarness : public LeafHarness {
 public:
  template <typename Config>
  static SlowHarness of(const Strings& endpoints, std::optional<SlowStart> rules = kMinute) {
    return SlowHarness(make_leaf(Config{}, PolicyContext{PolicyPath{"p"}, 1, nullptr}),
                       with<Config>(rules),
                       endpoints);
  }

  void up(const std::string& address) {
    ready(address);
    settle();
  }

  void settle() {
    step(RebuildDue{});
    for (; seen_ < timers.size(); ++seen_) {
      CHECK_FALSE(due_.has_value());
      due_ = now + timers[seen_].delay;
    }
  }

  void pass(Duration time) {
    const Instant end = now + time;
    while (due_.has_value() && *due_ <= end) {
      now = *std::exchange(due_, std::nullopt);
      step(TimerFired{timers[seen_ - 1].timer});
      settle();
    }
    now = end;
  }

  void list(const Strings& endpoints) {
    update(endpoints, config_);
    settle();
  }

  // Changes the rules. The timer that runs is never fired: it may be due long after the new window.
  template <typename Config>
  void change(const Strings& endpoints, const SlowStart& rules) {
    update(endpoints, with<Config>(rules));
    due_.reset();
    settle();
  }

  bool is_timed() const { return due_.has_value(); }

  const PickerPtr& picker() const { return published.back().picker; }

  double share_of(const std::string& address, std::uint64_t picks = 20'000) const {
    std::uint64_t hits = 0;
    for (std::uint64_t seed = 1; seed <= picks; ++seed) {
      const PickResult result = picker()->pick({.seed = seed * 0x9e3779b97f4a7c15ULL});
      if (std::get<Complete>(result.outcome).connection->address().str() == address) ++hits;
    }
    return static_cast<double>(hits) / static_cast<double>(picks);
  }

  // Picks until a call reaches the endpoint. The call ends with a report of this weight.
  void report(const std::string& address, double weight) const {
    const LoadReport load{.application_utilization = 1, .qps = weight};
    for (std::uint64_t tries = 0; tries < 1'000; ++tries) {
      const PickResult result = picker()->pick({.seed = tries});
      if (std::get<Complete>(result.outcome).connection->address().str() != address) continue;
      Tracking(result.trackers).end({0, &load, now});
      return;
    }
    FAIL("no call reached " << address);
  }

  std::string explained() const { return absl::StrJoin(testing::steps_of(picker()), "\n"); }

 private:
  SlowHarness(std::unique_ptr<Policy> policy, LbConfigPtr config, const Strings& endpoints)
      : LeafHarness(std::move(policy)), config_(std::move(config)) {
    now = Instant(1h);
    list(endpoints);
    for (const std::string& endpoint : endpoints)
      ready(endpoint);
    settle();
  }

  LbConfigPtr config_;
  std::size_t seen_ = 0;
  std::optional<Instant> due_;
};

// "a" and "c" are warm: their slow start is over. "b" was IDLE, and has just become READY again.
template <typename Config>
SlowHarness come_back(std::optional<SlowStart> rules = kMinute) {
  auto leaf = SlowHarness::of<Config>({"a", "b", "c"}, rules);
  leaf.pass(2h);
  leaf.idle("b");
  leaf.settle();
  leaf.up("b");
  return leaf;
}

// The share of calls of an endpoint with weight `factor`, beside two warm endpoints of weight 1.
double beside_two(double factor) {
  return factor / (2 + factor);
}

}  // namespace

// --- "Subchannel Weights and Scaling During Warmup" --------------------------------------------

TEST_CASE("A100: the factor is max(min_weight_percent, (time / window) ^ (1 / aggression))",
          "[spec][lb][slow_start][A100-1][A100-2]") {
  struct Row {
    SlowStart rules;
    Duration age;
    double factor;
  };

  const auto row = GENERATE(values<Row>({
      {{60s, 1, 10}, 0s, 0.1},
      {{60s, 1, 10}, 6s, 0.1},
      {{60s, 1, 10}, 15s, 0.25},
      {{60s, 1, 10}, 59'999ms, 59.999 / 60},
      {{60s, 1, 10}, 60s, 1},
      {{60s, 1, 10}, 1h, 1},
      {{60s, 1, 0}, 0s, 1.0 / 60},  // The first second counts as a whole one.
      {{60s, 1, 0}, 500ms, 1.0 / 60},
      {{60s, 2, 0}, 15s, 0.5},
      {{60s, 0.5, 0}, 30s, 0.25},
      {{60s, 0.5, 30}, 30s, 0.3},
      {{60s, 1, 100}, 0s, 1},
      {{500ms, 1, 10}, 0s, 1},
      {{3600s, 1e-9, 0}, 1800s, kLeastSlowStartFactor},
      {{3600s, 5e-324, 0}, 1s, kLeastSlowStartFactor},
      {{3600s, 1e308, 0}, 1s, 1},
  }));
  CAPTURE(row.rules.aggression, row.rules.min_weight_percent, row.age.count());
  CHECK(slow_start_factor(row.rules, row.age) == Approx(row.factor));
}

TEST_CASE("A100: a factor never falls with time, and stays within its bounds",
          "[spec][lb][slow_start][A100-1][property]") {
  CHECK(test::holds("factors", 2'000, [] {
    const SlowStart rules{std::chrono::milliseconds(*rc::gen::inRange(1, 3'600'001)),
                          *rc::gen::inRange(1, 1'000) / 100.0,
                          *rc::gen::inRange(0, 10'001) / 100.0};
    double before = std::max(rules.min_weight_percent / 100, kLeastSlowStartFactor);
    for (int at = 0; at <= 100; ++at) {
      const double factor = slow_start_factor(rules, rules.window * at / 100);
      RC_ASSERT(factor >= before);
      RC_ASSERT(factor <= 1);
      before = factor;
    }
    RC_ASSERT(before == 1);
  }));
}

TEST_CASE("A100: weighted_round_robin scales the mean where there are no reports",
          "[spec][lb][wrr][A100-4]") {
  SlowHarness leaf = come_back<WeightedRoundRobinConfig>();
  CHECK(leaf.share_of("b") == Approx(beside_two(0.1)).margin(0.002));
  leaf.pass(30s);
  CHECK(leaf.share_of("b") == Approx(beside_two(0.5)).margin(0.002));
  CHECK_THAT(leaf.explained(),
             Catch::Contains("from slow start alone while fewer than two report their load"));
  leaf.pass(31s);
  CHECK(leaf.share_of("b") == Approx(1.0 / 3).margin(0.002));
}

TEST_CASE("A100: weighted_round_robin scales the weights from load reports after the blackout",
          "[spec][lb][wrr][A100-1][A100-4]") {
  auto leaf = SlowHarness::of<WeightedRoundRobinConfig>({"a", "b", "c"});
  leaf.pass(2h);
  // The weights are 200, 400 and 200.
  const auto report_for = [&](int seconds) {
    for (int second = 0; second < seconds; ++second) {
      leaf.report("a", 200);
      leaf.report("b", 400);
      leaf.report("c", 200);
      leaf.pass(1s);
    }
  };
  report_for(13);
  CHECK(leaf.share_of("b") == Approx(0.5).margin(0.002));
  leaf.idle("b");
  leaf.settle();
  leaf.up("b");
  // In its blackout "b" has its factor (0.1) times the mean weight of "a" and "c", which is 200.
  leaf.pass(1s);
  CHECK(leaf.share_of("b") == Approx(beside_two(0.1)).margin(0.002));
  report_for(14);
  const double factor = 15.0 / 60;
  CHECK(leaf.share_of("b") == Approx(factor / (1 + factor)).margin(0.012));
  CHECK_THAT(leaf.explained(), Catch::Contains("from its load reports and slow start"));
}

// --- Envoy's slow start: round_robin and least_request -----------------------------------------

TEST_CASE("A100: round_robin gives an endpoint that comes back its share over the window",
          "[spec][lb][round_robin][A100-3][A100-6]") {
  SlowHarness leaf = come_back<RoundRobinConfig>();
  CHECK(leaf.share_of("b") == Approx(beside_two(0.1)).margin(0.002));
  for (const int seconds : {15, 30, 45}) {
    leaf.pass(15s);
    CAPTURE(seconds);
    CHECK(leaf.share_of("b") == Approx(beside_two(seconds / 60.0)).margin(0.002));
  }
  leaf.pass(18s);
  CHECK(leaf.share_of("b", 300) == Approx(1.0 / 3));
  CHECK_FALSE(leaf.is_timed());
}

TEST_CASE("A100: least_request draws by weight, so idle endpoints have shares by weight",
          "[spec][lb][least_request][A100-6]") {
  SlowHarness leaf = come_back<LeastRequestConfig>();
  CHECK(leaf.share_of("b") == Approx(beside_two(0.1)).margin(0.006));
  leaf.pass(30s);
  CHECK(leaf.share_of("b") == Approx(beside_two(0.5)).margin(0.012));
  leaf.pass(33s);
  CHECK(leaf.share_of("b") == Approx(1.0 / 3).margin(0.02));
  CHECK_FALSE(leaf.is_timed());
}

TEST_CASE("A100: in least_request calls in flight follow the weights",
          "[spec][lb][least_request][A100-6]") {
  SlowHarness leaf = come_back<LeastRequestConfig>();
  leaf.pass(15s);  // The factor is 0.25.
  std::multimap<std::string, Tracking> calls;
  for (std::uint64_t seed = 1; seed <= 900; ++seed) {
    const PickResult result = leaf.picker()->pick({.seed = seed});
    calls.emplace(std::get<Complete>(result.outcome).connection->address().str(),
                  Tracking(result.trackers));
  }
  CHECK(static_cast<double>(calls.count("b")) == Approx(100).margin(15));
  for (auto& [address, call] : calls)
    call.end({0});
}

TEST_CASE("A100: endpoints that become READY together have equal shares",
          "[spec][lb][round_robin][A100-5]") {
  auto leaf = SlowHarness::of<RoundRobinConfig>({"a", "b", "c"});
  const std::size_t before = leaf.published.size();
  for (int second = 0; second < 70; ++second) {
    CHECK(leaf.share_of("b", 300) == Approx(1.0 / 3));
    leaf.pass(1s);
  }
  CHECK(leaf.published.size() == before);
}

TEST_CASE("A100: an endpoint that a judge finds fit again begins anew",
          "[spec][lb][round_robin][A100-3]") {
  auto leaf = SlowHarness::of<RoundRobinConfig>({"a", "b", "c"});
  leaf.pass(2h);
  leaf.unhealthy("b");
  leaf.settle();
  leaf.up("b");
  CHECK(leaf.share_of("b") == Approx(beside_two(0.1)).margin(0.002));
  // An update that keeps the endpoint does not begin its slow start anew.
  leaf.pass(30s);
  leaf.list({"c", "b", "a"});
  CHECK(leaf.share_of("b") == Approx(beside_two(0.5)).margin(0.002));
}

TEST_CASE("A100: an endpoint that was added begins slowly", "[spec][lb][round_robin][A100-3]") {
  auto leaf = SlowHarness::of<RoundRobinConfig>({"a", "c"});
  leaf.pass(2h);
  leaf.list({"a", "b", "c"});
  leaf.up("b");
  CHECK(leaf.share_of("b") == Approx(beside_two(0.1)).margin(0.002));
}

TEST_CASE("A100: pickers are made anew at most twenty times in a window, and once a second",
          "[spec][lb][slow_start][A100-7]") {
  CHECK(slow_start_step({60s, 1, 10}) == 3s);
  CHECK(slow_start_step({1h, 1, 10}) == 180s);
  CHECK(slow_start_step({5s, 1, 10}) == 1s);
  SlowHarness leaf = come_back<RoundRobinConfig>();
  const std::size_t before = leaf.published.size();
  leaf.pass(10min);
  CHECK(leaf.published.size() - before <= 21);
  CHECK(leaf.published.size() - before >= 15);
}

TEST_CASE("A100: a picker that the timer wants has the timer's factors",
          "[spec][lb][round_robin][A100-7]") {
  SlowHarness leaf = come_back<RoundRobinConfig>();
  leaf.pass(11'999ms);
  leaf.now += 1ms;
  leaf.step(TimerFired{leaf.timers.back().timer});
  leaf.now += 5ms;
  SECTION("as of its own time") {
    leaf.step(RebuildDue{});
    CHECK_THAT(leaf.explained(), Catch::Contains("20 % of its weight, READY for 12 s of 60 s"));
  }
  SECTION("but not if another endpoint is READY anew") {
    leaf.idle("c");
    leaf.ready("c");
    leaf.step(RebuildDue{});
    CHECK_THAT(leaf.explained(), Catch::Contains("READY for 12.005 s of 60 s"));
    CHECK(leaf.share_of("c") == Approx(0.1 / 1.3).margin(0.002));
  }
  SECTION("but not if an endpoint is lost") {
    leaf.idle("c");
    leaf.step(RebuildDue{});
    CHECK(leaf.share_of("b") == Approx(0.2 / 1.2).margin(0.002));
  }
  SECTION("but not by other rules") {
    leaf.update({"a", "b", "c"}, with<RoundRobinConfig>(SlowStart{60s, 1, 50}));
    leaf.step(RebuildDue{});
    CHECK(leaf.share_of("b") == Approx(beside_two(0.5)).margin(0.002));
  }
}

TEST_CASE("A100: while no endpoint is READY the timer makes no picker",
          "[spec][lb][round_robin][A100-7]") {
  SlowHarness leaf = come_back<RoundRobinConfig>();
  for (const char* address : {"a", "b", "c"})
    leaf.idle(address);
  leaf.settle();
  const std::size_t before = leaf.published.size();
  leaf.pass(10s);
  CHECK(leaf.published.size() == before);
  CHECK_FALSE(leaf.is_timed());
}

TEST_CASE("A100: without slow start there is no timer, and a change of it counts at once",
          "[spec][lb][round_robin][A100-7]") {
  SlowHarness leaf = come_back<RoundRobinConfig>(std::nullopt);
  CHECK(leaf.timers.empty());
  CHECK(leaf.share_of("b", 300) == Approx(1.0 / 3));
  leaf.update({"a", "b", "c"}, with<RoundRobinConfig>(kMinute));
  leaf.settle();
  CHECK(leaf.share_of("b") == Approx(beside_two(0.1)).margin(0.002));
}

TEMPLATE_TEST_CASE("A100: a shorter window does not wait for the timer of a longer one",
                   "[spec][lb][slow_start][A100-7]",
                   RoundRobinConfig,
                   LeastRequestConfig) {
  SlowHarness leaf = come_back<TestType>(SlowStart{1h, 1, 10});
  const TimerId before = leaf.timers.back().timer;
  leaf.template change<TestType>({"a", "b", "c"}, SlowStart{10s, 1, 10});
  CHECK(leaf.share_of("b") == Approx(beside_two(0.1)).margin(0.01));
  leaf.pass(5s);
  CHECK(leaf.share_of("b") == Approx(beside_two(0.5)).margin(0.01));
  const std::size_t timers = leaf.timers.size();
  leaf.step(TimerFired{before});
  leaf.settle();
  CHECK(leaf.timers.size() == timers);
}

TEST_CASE("A100: shares stay within the bounds of their factors during the window",
          "[spec][lb][round_robin][A100-6][property]") {
  CHECK(test::holds("shares over the window", 60, [] {
    const SlowStart rules{std::chrono::seconds(*rc::gen::inRange(5, 3'600)),
                          *rc::gen::inRange(20, 500) / 100.0,
                          *rc::gen::inRange(1, 101) * 1.0};
    SlowHarness leaf = come_back<RoundRobinConfig>(rules);
    for (int at = 0; at < 6; ++at) {
      const Duration age = rules.window * at / 5;
      // The picker is at most one slow_start_step() old, so it may still have an earlier factor.
      const Duration oldest = age - std::min(age, slow_start_step(rules));
      const double share = leaf.share_of("b", 3'000);
      RC_ASSERT(share >= beside_two(slow_start_factor(rules, oldest)) - 0.005);
      RC_ASSERT(share <= beside_two(slow_start_factor(rules, age)) + 0.005);
      leaf.pass(rules.window / 5);
    }
  }));
}

TEST_CASE("A100: explanations say which endpoints are in slow start", "[spec][lb][A100-8]") {
  SlowHarness turns = come_back<RoundRobinConfig>();
  turns.pass(21s);
  CHECK_THAT(
      turns.explained(),
      Catch::StartsWith("round_robin: b is in slow start; 35 % of its weight, READY for 21 s "
                        "of 60 s; CDS\nround_robin: "));
  CHECK_THAT(turns.explained(), Catch::Contains(" of 65535, from slow start"));
  SlowHarness least = come_back<LeastRequestConfig>();
  least.pass(21s);
  CHECK_THAT(least.explained(),
             Catch::StartsWith("least_request: b is in slow start; 35 % of its weight, READY for "
                               "21 s of 60 s; CDS\nleast_request: drew "));
  CHECK_THAT(least.explained(),
             Catch::EndsWith("the fewest calls for its weight of the 2 drawn by weight from 3 that "
                             "are READY; CDS"));
}

TEST_CASE("A100: an explanation names twenty endpoints in slow start, and counts the others",
          "[spec][lb][round_robin][A100-8]") {
  auto leaf = SlowHarness::of<RoundRobinConfig>({"warm"});
  leaf.pass(2h);
  Strings endpoints{"warm"};
  for (int number = 0; number < 23; ++number)
    endpoints.push_back(absl::StrCat("e", number));
  leaf.list(endpoints);
  for (const std::string& endpoint : endpoints) {
    if (endpoint != "warm") leaf.ready(endpoint);
  }
  leaf.settle();
  const Strings steps = testing::steps_of(leaf.picker());
  REQUIRE(steps.size() == 22);
  CHECK_THAT(steps[0], Catch::StartsWith("round_robin: e0 is in slow start; "));
  CHECK_THAT(steps[19], Catch::StartsWith("round_robin: e19 is in slow start; "));
  CHECK(steps[20] == "round_robin: 3 others are in slow start; CDS");
}

// --- "xDS Integration" -------------------------------------------------------------------------

namespace {

const std::string kRoundRobinType = "round_robin.v3.RoundRobin";
const std::string kLeastRequestType = "least_request.v3.LeastRequest";
const std::string kWeightedType =
    "client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin";

std::string slow(const std::string& fields) {
  return "slow_start_config { " + fields + " }";
}

// The slow start of all five places in which a cluster may have one.
std::vector<std::optional<SlowStart>> parsed(const std::string& fields) {
  const std::string config = slow(fields);
  const auto of_enum = [&](const std::string& name) {
    return xds::config_of<WrrLocalityConfig>(name + " { " + config + " }").child;
  };
  return {
      xds::config_of<RoundRobinConfig>(xds::list(xds::entry(kRoundRobinType, config))).slow_start,
      xds::config_of<LeastRequestConfig>(xds::list(xds::entry(kLeastRequestType, config)))
          .slow_start,
      xds::config_of<WeightedRoundRobinConfig>(xds::list(xds::entry(kWeightedType, config)))
          .slow_start,
      std::get<RoundRobinConfig>(*of_enum("lb_policy: ROUND_ROBIN round_robin_lb_config"))
          .slow_start,
      std::get<LeastRequestConfig>(*of_enum("lb_policy: LEAST_REQUEST least_request_lb_config"))
          .slow_start};
}

}  // namespace

TEST_CASE("A100: slow_start_config is read in every policy, and has defaults",
          "[spec][xds][parse][A100-9]") {
  using All = std::vector<std::optional<SlowStart>>;
  CHECK(parsed("slow_start_window { seconds: 60 }") == All(5, SlowStart{60s, 1, 10}));
  CHECK(parsed("slow_start_window { seconds: 3600 } aggression { default_value: 2.5 } "
               "min_weight_percent { value: 0 }") == All(5, SlowStart{3600s, 2.5, 0}));
  CHECK(parsed("") == All(5));
  CHECK(parsed("slow_start_window { } min_weight_percent { value: 20 }") == All(5));
}

TEST_CASE("A100: a window, an aggression or a percentage out of range is refused, with its path",
          "[spec][xds][parse][A100-9]") {
  struct Row {
    std::string fields;
    std::string error;
  };

  const std::string window = "slow_start_window { seconds: 60 } ";
  const auto row = GENERATE_COPY(values<Row>({
      {"slow_start_window { seconds: 3601 }",
       "slow_start_window: must be at most 3600 s, found 3601 s"},
      {"slow_start_window { seconds: 3600 nanos: 1 }",
       "slow_start_window: must be at most 3600 s, found 3600 s and 1 ns"},
      {"slow_start_window { seconds: -1 }",
       "slow_start_window.seconds: must be in [0, 315576000000], found -1"},
      {window + "aggression { }",
       "aggression.default_value: must be more than 0, and finite, found 0"},
      {window + "aggression { default_value: -1 }",
       "aggression.default_value: must be more than 0, and finite, found -1"},
      {window + "aggression { default_value: nan }",
       "aggression.default_value: must be more than 0, and finite, found nan"},
      {window + "aggression { default_value: inf }",
       "aggression.default_value: must be more than 0, and finite, found inf"},
      {window + "min_weight_percent { value: 100.5 }",
       "min_weight_percent.value: must be in [0, 100], found 100.5"},
      {window + "min_weight_percent { value: -1 }",
       "min_weight_percent.value: must be in [0, 100], found -1"},
      {window + "min_weight_percent { value: nan }",
       "min_weight_percent.value: must be in [0, 100], found nan"},
  }));
  for (const std::string& type : {kRoundRobinType, kLeastRequestType, kWeightedType}) {
    CHECK(xds::error_in(xds::list(xds::entry(type, slow(row.fields)))) ==
          xds::kValue + ".slow_start_config." + row.error);
  }
  CHECK(xds::error_in("lb_policy: ROUND_ROBIN round_robin_lb_config { " + slow(row.fields) +
                      " }") == "round_robin_lb_config.slow_start_config." + row.error);
  CHECK(xds::error_in("lb_policy: LEAST_REQUEST least_request_lb_config { " + slow(row.fields) +
                      " }") == "least_request_lb_config.slow_start_config." + row.error);
}

}  // namespace signalbox
