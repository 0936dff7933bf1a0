// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/priority.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "lb/tree/priority_rules.hpp"
#include "lb/tree/priority_watch.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/step_log.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

PriorityChild in(ConnectivityState state) {
  return {true, state, false};
}

PriorityChild within_window(ConnectivityState state = kConnecting) {
  return {true, state, true};
}

PriorityChild lost() {
  return {true, kConnecting, true, true};
}

PriorityChild not_started() {
  return {};
}

using Texts = std::vector<std::string>;

LbConfigPtr priorities(const Texts& names, const std::string& version = "1") {
  PriorityConfig config;
  for (const std::string& name : names) {
    config.priorities.emplace_back(name);
    config.children[ChildName(name)] = {
        make_lb_config(CdsConfig{ClusterName(version)}), std::nullopt, false};
  }
  return make_lb_config(std::move(config));
}

bool has(const Texts& texts, const std::string& text) {
  return std::ranges::count(texts, text) != 0;
}

/// All changes of the active priority.
std::vector<PriorityMoved> moves_of(const PolicyHarness& policy) {
  std::vector<PriorityMoved> moves;
  for (const LbEffect& effect : policy.effects()) {
    const auto* seen = std::get_if<Observe>(&effect);
    if (seen == nullptr) continue;
    if (const auto* move = std::get_if<PriorityMoved>(&seen->observation)) moves.push_back(*move);
  }
  return moves;
}

/// A policy with priorities a and b: a has failed, so b serves.
PolicyHarness second_serves() {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"a", "b"}));
  policy.child("a", kFailure);
  policy.applied("a");
  policy.child("b", kReady);
  policy.applied("b");
  return policy;
}

}  // namespace

TEST_CASE("priority: calls that wait or fail say for which priority; a READY one adds nothing",
          "[lb][priority][A121]") {
  PolicyHarness policy{make_priority()};
  const auto priority = [&] { return int{policy.published()->picker->pick({}).priority}; };
  policy.update(priorities({"a", "b"}));
  policy.child("a", kConnecting);
  policy.applied("a");
  CHECK(priority() == 0);
  policy.child("a", kFailure);
  policy.child("b", kConnecting);
  policy.applied("b");
  CHECK(priority() == 1);
  policy.child("b", kFailure);
  CHECK(priority() == 1);
  policy.child("b", kReady);
  CHECK(priority() == PickResult::kNoPriority);
  policy.child("a", kIdle);
  CHECK(priority() == 0);
}

TEST_CASE("priority: chooses the child that should carry traffic", "[lb][priority][A56][A75-1]") {
  struct Row {
    const char* when;
    std::vector<PriorityChild> children;
    std::size_t chosen;
    std::size_t considered;
    bool deactivates;
  };

  const auto row = GENERATE(values<Row>({
      {"the first is ready", {in(kReady), in(kReady)}, 0, 1, true},
      {"the first is idle", {in(kIdle), in(kReady)}, 0, 1, true},
      {"the first failed and the second is idle", {in(kFailure), in(kIdle)}, 1, 2, true},
      {"the first still has its window", {within_window(), in(kReady)}, 0, 1, false},
      {"the first outlived its window", {in(kConnecting), in(kReady)}, 1, 2, true},
      {"the first failed, the second is not started", {in(kFailure), not_started()}, 1, 2, false},
      {"nothing is started", {not_started(), not_started()}, 0, 1, false},
      {"nobody is usable, one connects",
       {in(kFailure), in(kConnecting), in(kFailure)},
       1,
       3,
       false},
      {"two connect, the first of them", {in(kConnecting), in(kConnecting)}, 0, 2, false},
      {"all failed, the last explains why", {in(kFailure), in(kFailure)}, 1, 2, false},
  }));
  DYNAMIC_SECTION(row.when) {
    const PriorityChoice choice = choose_priority(row.children);
    CHECK(choice.index == row.chosen);
    CHECK(choice.considered == row.considered);
    CHECK(choice.deactivate_lower == row.deactivates);
  }
}

TEST_CASE("priority: a READY standby carries the calls of a priority that connects again",
          "[lb][priority][standby]") {
  struct Row {
    const char* when;
    std::vector<PriorityChild> children;
    std::size_t standbys;
    std::size_t chosen;
    std::size_t considered;
    std::size_t stand_by;
  };

  const auto row = GENERATE(values<Row>({
      {"the first is ready: the next is a standby",
       {in(kReady), not_started(), not_started()},
       1,
       0,
       1,
       1},
      {"there are fewer than that", {in(kReady), not_started()}, 5, 0, 1, 1},
      {"the last has none", {in(kFailure), in(kReady)}, 1, 1, 2, 0},
      {"the first is not usable yet", {within_window(), not_started()}, 1, 0, 1, 0},
      {"the first is lost", {lost(), in(kReady), not_started()}, 1, 1, 2, 1},
      {"the first connects because a call asked", {within_window(), in(kReady)}, 1, 0, 1, 0},
      {"the window of the lost one is over", {in(kConnecting), in(kReady)}, 1, 1, 2, 0},
      {"without standbys its calls wait", {lost(), in(kReady)}, 0, 0, 1, 0},
      {"the standby is lost, too", {lost(), lost()}, 1, 0, 1, 0},
      {"the standby is IDLE, so its calls would wait", {lost(), in(kIdle)}, 1, 0, 1, 0},
      {"a READY one is no standby if it is further down",
       {lost(), in(kFailure), in(kReady)},
       1,
       0,
       1,
       0},
      {"the second standby", {lost(), in(kFailure), in(kReady)}, 2, 2, 3, 0},
      {"the first failed, the second is lost", {in(kFailure), lost(), in(kReady)}, 1, 2, 3, 0},
  }));
  DYNAMIC_SECTION(row.when) {
    const PriorityChoice choice = choose_priority(row.children, row.standbys);
    CHECK(choice.index == row.chosen);
    CHECK(choice.considered == row.considered);
    CHECK(choice.standbys == row.stand_by);
    CHECK(choice.deactivate_lower == is_usable(row.children[row.chosen].state));
  }
}

TEST_CASE("priority: calls of a lost priority go to its standby within the failover window",
          "[lb][priority][standby]") {
  PolicyOptions options;
  options.standby_priorities = 1;
  PolicyHarness policy{make_priority(options)};
  policy.update(priorities({"a", "b", "c"}));
  policy.child("a", kConnecting);
  policy.applied("a");
  CHECK(policy.count<StartChild>() == 1);  // No standby starts before a priority serves.
  policy.child("a", kReady);
  CHECK(policy.count<StartChild>() == 2);
  policy.child("b", kReady);
  policy.applied("b");
  CHECK(policy.pick() == "fail UNAVAILABLE: a READY");

  // ring_hash and pick_first go IDLE when they lose their connections, and connect for a call.
  if (GENERATE(false, true)) policy.child("a", kIdle);
  policy.child("a", kConnecting);
  CHECK(policy.pick() == "fail UNAVAILABLE: b READY");
  CHECK(policy.count<StartChild>() == 3);  // c stands by for b.

  SECTION("and return when it is READY again") {
    policy.child("a", kReady);
    CHECK(policy.pick() == "fail UNAVAILABLE: a READY");
    const auto later = policy.advance(std::chrono::minutes(15));
    CHECK(std::ranges::count(later, "stop c") == 1);
    CHECK(std::ranges::count(later, "stop b") == 0);
  }
  SECTION("and stay when the window is over") {
    policy.advance(std::chrono::seconds(10));
    CHECK(policy.pick() == "fail UNAVAILABLE: b READY");
  }
  SECTION("a standby that goes IDLE is asked to connect") {
    policy.child("a", kReady);
    CHECK(std::ranges::count(policy.child("b", kIdle), "exit-idle b") == 1);
    CHECK(policy.pick() == "fail UNAVAILABLE: a READY");
  }
}

TEST_CASE("priority: the choice is idempotent in every combination of states",
          "[lb][priority][A56][B3]") {
  const std::vector<PriorityChild> kinds = {not_started(),
                                            in(kIdle),
                                            in(kConnecting),
                                            in(kReady),
                                            in(kFailure),
                                            within_window(),
                                            within_window(kFailure),
                                            lost()};
  for (const PriorityChild& first : kinds) {
    for (const PriorityChild& second : kinds) {
      for (const PriorityChild& third : kinds) {
        for (std::size_t standbys = 0; standbys <= 2; ++standbys) {
          std::vector<PriorityChild> children = {first, second, third};
          const PriorityChoice choice = choose_priority(children, standbys);
          for (std::size_t i = 0; i < choice.considered + choice.standbys; ++i) {
            if (!children[i].started) children[i] = within_window();
          }
          const PriorityChoice again = choose_priority(children, standbys);
          CHECK(again.index == choice.index);
          CHECK(again.considered == choice.considered);
          CHECK(again.standbys == choice.standbys);
        }
      }
    }
  }
}

TEST_CASE("priority: hands on the endpoints that get calls, and no others",
          "[lb][priority][ENV-9][A27]") {
  Endpoints endpoints;
  const auto fit = std::make_shared<const Locality>();
  endpoints.priorities.push_back(
      {{fit}, {std::make_shared<const Locality>()}, {std::make_shared<const Locality>()}});
  PolicyHarness policy{make_priority()};
  PriorityConfig config;
  config.priorities.emplace_back("a");
  config.children[ChildName("a")] = {make_lb_config(RoundRobinConfig{}), 0, false};
  policy.update(make_lb_config(config), nullptr, std::make_shared<const Endpoints>(endpoints));
  const auto found = std::ranges::find_if(policy.effects(), [](const LbEffect& effect) {
    return std::holds_alternative<StartChild>(effect);
  });
  REQUIRE(found != policy.effects().end());
  const auto* start = &std::get<StartChild>(*found);
  REQUIRE(start->update.endpoints != nullptr);
  REQUIRE(start->update.endpoints->priorities.size() == 1);
  const Priority& only = start->update.endpoints->priorities[0];
  CHECK(only.localities == std::vector<LocalityPtr>{fit});
  CHECK(only.degraded.empty());
  CHECK(only.unhealthy.empty());
}

TEST_CASE("priority: a child that never answers holds failover up for one window",
          "[lb][priority][A56][B4]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"a", "b"}));
  policy.child("a", kReady);
  policy.applied("a");
  policy.update(priorities({"a", "b"}, "2"));
  policy.child("a", kFailure);
  CHECK(policy.pick() == "fail UNAVAILABLE: a READY");
  CHECK_FALSE(has(policy.advance(9s), "start b"));
  const Texts done = policy.advance(1s);
  CHECK(has(done, "start b"));
  policy.child("b", kReady);
  CHECK(policy.pick() == "fail UNAVAILABLE: b READY");
}

TEST_CASE("priority: behind a child that never answers, each configuration gets its turn",
          "[lb][priority][A56][B4]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"a", "b"}));
  policy.child("a", kReady);
  policy.applied("a");
  policy.update(priorities({"a", "b"}, "2"));
  policy.advance(5s);
  policy.update(priorities({"a", "b"}, "3"));
  CHECK(has(policy.advance(5s), "applied 2"));
  policy.child("a", kFailure);
  CHECK_FALSE(has(policy.advance(9s), "start b"));
  const Texts done = policy.advance(1s);
  CHECK(has(done, "start b"));
  policy.applied("b");
  policy.update(priorities({"b"}, "4"));
  CHECK(has(policy.applied("b"), "stop a"));
}

TEST_CASE("priority: the wait for answers ends with them, and is forgotten",
          "[lb][priority][A56][B4]") {
  PolicyHarness policy = second_serves();
  CHECK(has(policy.update(priorities({"a", "b"}, "2")), "timer answers 10s"));
  const auto first = std::get<StartTimer>(policy.effects().back()).timer;
  CHECK_FALSE(has(policy.applied("a"), "cancel answers"));
  CHECK(has(policy.applied("b"), "cancel answers"));
  policy.update(priorities({"b"}, "3"));
  // The first timer fires although it was cancelled; it must not end the second wait.
  CHECK(policy.step(TimerFired{first}).empty());
  CHECK(has(policy.applied("b"), "stop a"));
}

TEST_CASE("priority: nobody is stopped while a configuration is half applied",
          "[lb][priority][A56][B4]") {
  PolicyHarness policy = second_serves();
  policy.child("a", kReady);
  policy.advance(15min - 1s);
  SECTION("and who is needed after it stays") {
    policy.update(priorities({"b"}, "2"));
    CHECK_FALSE(has(policy.advance(2s), "stop b"));
    CHECK(has(policy.applied("b"), "stop a"));
    CHECK(policy.advance(1h).empty());
    CHECK(policy.count<StartChild>() == 2);
    CHECK(policy.pick() == "fail UNAVAILABLE: b READY");
  }
  SECTION("and who is not needed after it goes then") {
    policy.update(priorities({"a", "b"}, "2"));
    CHECK_FALSE(has(policy.advance(2s), "stop b"));
    CHECK_FALSE(has(policy.applied("b"), "stop b"));
    CHECK(has(policy.applied("a"), "stop b"));
  }
}

TEST_CASE("priority: a move upwards is a recovery, or what the configuration's order made of it",
          "[lb][priority][A56][A75-1]") {
  struct Row {
    const char* when;
    Texts before;
    std::size_t from;
    Texts after;
    std::size_t to;
    std::vector<FailedOver> told;
  };

  const ClusterName cluster{"c"};
  const FailedOver recovered{cluster, FailoverDirection::kUp, FailoverReason::kRecovered};
  const FailedOver reordered{cluster, FailoverDirection::kUp, FailoverReason::kReconfigured};
  const FailedOver left{cluster, FailoverDirection::kDown, FailoverReason::kReconfigured};
  const auto row = GENERATE_COPY(values<Row>({
      {"the higher one is up again", {"a", "b"}, 1, {"a", "b"}, 0, {recovered}},
      {"the two changed places", {"a", "b"}, 0, {"b", "a"}, 0, {reordered}},
      {"a new one stands above", {"b"}, 0, {"a", "b"}, 0, {reordered}},
      {"it was moved down", {"a", "b", "c"}, 1, {"a", "c", "b"}, 1, {reordered}},
      {"its own place is another", {"a", "b"}, 1, {"b", "a"}, 0, {}},
      {"it is gone, and what is below serves", {"a", "b"}, 0, {"c", "b"}, 1, {left}},
  }));
  DYNAMIC_SECTION(row.when) {
    auto told = [&, watch = PriorityWatch()](const Texts& order, std::size_t to) mutable {
      PriorityConfig config;
      config.cluster = cluster;
      for (const std::string& name : order)
        config.priorities.emplace_back(name);
      LbEffects effects;
      std::vector<PrioritySeen> seen;
      for (const ChildName& name : config.priorities)
        seen.push_back({.name = name, .started = true, .state = kReady});
      watch.record(config, seen, to, Instant{}, effects);
      std::vector<FailedOver> all;
      for (const LbEffect& effect : effects) {
        const auto* observed = std::get_if<Observe>(&effect);
        if (observed == nullptr) continue;
        if (const auto* moved = std::get_if<FailedOver>(&observed->observation))
          all.push_back(*moved);
      }
      return all;
    };
    CHECK(told(row.before, row.from).empty());
    CHECK(told(row.after, row.to) == row.told);
  }
}

TEST_CASE("priority: the status has every priority, since when and why", "[lb][priority][status]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"a", "b", "c"}));
  policy.applied("a");
  policy.advance(3s);
  policy.child("a", kFailure);
  policy.advance(1s);
  policy.applied("b");
  policy.child("b", kReady);
  policy.advance(1s);
  policy.child("b", kReady);  // The same again: b is READY since the first report.
  policy.child("a", kReady);

  std::vector<PrioritiesSeen> shown;
  for (const LbEffect& effect : policy.effects()) {
    if (!is_for_status(effect)) continue;
    const Observation& observation = std::get<Observe>(effect).observation;
    if (const auto* seen = std::get_if<PrioritiesSeen>(&observation)) shown.push_back(*seen);
  }
  const std::vector<PriorityMoved> moves = moves_of(policy);
  const Instant start{};
  const auto failed = absl::UnavailableError("a failed");
  const PrioritySeen c{.name = ChildName("c")};
  const PrioritySeen a_fails{ChildName("a"), true, kFailure, start + 3s, failed, std::nullopt};
  REQUIRE(shown.size() == 4);
  CHECK(shown[0].priorities ==
        std::vector<PrioritySeen>{{ChildName("a"), true, kConnecting, start, {}, start + 10s},
                                  {.name = ChildName("b")},
                                  c});
  CHECK(shown[0].active == std::nullopt);
  CHECK(shown[1].priorities ==
        std::vector<PrioritySeen>{
            a_fails, {ChildName("b"), true, kConnecting, start + 3s, {}, start + 13s}, c});
  CHECK(shown[2].priorities ==
        std::vector<PrioritySeen>{
            a_fails, {ChildName("b"), true, kReady, start + 4s, {}, std::nullopt}, c});
  CHECK(shown[2].active == 1);
  CHECK(shown[3].active == 0);
  CHECK(shown[3].priorities[0] ==
        PrioritySeen{ChildName("a"), true, kReady, start + 5s, {}, std::nullopt});

  REQUIRE(moves.size() == 2);
  CHECK(moves[0] == PriorityMoved{.at = start + 4s,
                                  .to = 1,
                                  .to_name = ChildName("b"),
                                  .reason = PriorityChangeReason::kFirst});
  CHECK(moves[1] == PriorityMoved{.at = start + 5s,
                                  .from = 1,
                                  .to = 0,
                                  .from_name = ChildName("b"),
                                  .to_name = ChildName("a"),
                                  .reason = PriorityChangeReason::kRecovered});
}

TEST_CASE("priority: a lost priority and the next one are two changes", "[lb][priority][status]") {
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"a", "b"}));
  policy.applied("a");
  policy.child("a", kReady);
  policy.advance(1s);
  // Priority a fails, and b connects for two seconds.
  policy.child("a", kFailure);
  policy.applied("b");
  policy.advance(2s);
  policy.child("b", kReady);
  // Priority b loses its connection, so its failover window begins.
  policy.child("b", kConnecting);
  const std::vector<PriorityMoved> moves = moves_of(policy);
  const Instant start{};
  REQUIRE(moves.size() == 4);
  CHECK(moves[0].reason == PriorityChangeReason::kFirst);
  CHECK(moves[1] == PriorityMoved{.at = start + 1s,
                                  .from = 0,
                                  .from_name = ChildName("a"),
                                  .reason = PriorityChangeReason::kLost,
                                  .details = "a failed"});
  CHECK(moves[2] == PriorityMoved{.at = start + 3s,
                                  .to = 1,
                                  .to_name = ChildName("b"),
                                  .reason = PriorityChangeReason::kFailed,
                                  .details = "a failed",
                                  .without = 2s});
  CHECK(moves[3] == PriorityMoved{.at = start + 3s,
                                  .from = 1,
                                  .from_name = ChildName("b"),
                                  .reason = PriorityChangeReason::kLost,
                                  .window_left = 10s});
}

TEST_CASE("priority: each change of the active priority has its reason", "[lb][priority][status]") {
  using Reason = PriorityChangeReason;
  const ChildName a("a");
  const ChildName b("b");
  const Instant start{};
  PolicyHarness policy{make_priority()};
  policy.update(priorities({"a", "b"}));
  policy.child("a", kReady);
  policy.advance(1s);
  PriorityMoved expected;
  SECTION("the window of a is over before b is READY") {
    policy.child("a", kConnecting);
    policy.advance(10s);
    policy.child("b", kReady);
    expected = {.at = start + 11s, .to = 1, .to_name = b, .reason = Reason::kTimedOut};
    expected.without = 10s;
  }
  SECTION("a is back within its window") {
    policy.child("a", kConnecting);
    policy.advance(3s);
    policy.child("a", kReady);
    expected = {.at = start + 4s, .to = 0, .to_name = a, .reason = Reason::kRecovered};
    expected.without = 3s;
  }
  SECTION("the configuration gives b another place") {
    policy.child("a", kFailure);
    policy.child("b", kReady);
    policy.update(priorities({"b"}, "2"));
    policy.applied("b");
    expected = {.at = start + 1s, .from = 1, .to = 0, .from_name = b, .to_name = b};
    expected.reason = Reason::kReconfigured;
  }
  SECTION("the configuration takes a away") {
    policy.update(priorities({"c", "b"}, "2"));
    CHECK(moves_of(policy).back() ==
          PriorityMoved{.at = start + 1s, .from = 0, .from_name = a, .reason = Reason::kLost});
    policy.advance(2s);
    policy.child("c", kFailure);
    policy.child("b", kReady);
    expected = {.at = start + 3s, .to = 1, .to_name = b, .reason = Reason::kReconfigured};
    expected.without = 2s;
  }
  CHECK(moves_of(policy).back() == expected);
}

TEST_CASE("priority: explanations follow the priorities above the one that serves",
          "[lb][priority][explain]") {
  PolicyHarness policy = second_serves();
  const auto first_step = [&] {
    return signalbox::testing::steps_of(policy.published()->picker).front();
  };
  CHECK_THAT(first_step(), Catch::Contains("not priority 0 of 2: cluster a; TRANSIENT_FAILURE"));
  CHECK(policy.child("a", kConnecting) == Texts{"publish READY"});
  CHECK_THAT(first_step(),
             Catch::Contains("not priority 0 of 2: cluster a; CONNECTING; its failover window is "
                             "over"));
  // Only the text of the failure is another, which is no reason to publish.
  policy.child("a", kFailure);
  CHECK(policy
            .step(ChildStateChanged{
                ChildName("a"), kFailure, absl::UnavailableError("again"), named_picker("again")})
            .empty());
}

TEST_CASE("priority: a re-resolution request stops where the child's configuration says so",
          "[lb][priority][A37-33]") {
  PriorityConfig config;
  config.priorities = {ChildName("a"), ChildName("b")};
  config.children[config.priorities[0]] = {make_lb_config(RoundRobinConfig{}), 0, true};
  config.children[config.priorities[1]] = {make_lb_config(RoundRobinConfig{}), 1, false};
  PolicyHarness policy{make_priority()};
  policy.update(make_lb_config(config));
  policy.child("a", kFailure);
  policy.child("b", kReady);
  policy.applied("a");
  policy.applied("b");
  const auto asks = [&](const std::string& child) {
    return policy.step(ChildAskedReresolution{ChildName(child)});
  };
  CHECK(asks("a").empty());
  CHECK(asks("b") == Texts{"re-resolve"});
  CHECK(asks("gone").empty());

  // "a~2" and "b~3" are policies that start in order to replace those of children a and b. Their
  // requests count as requests of a and b.
  for (auto& [name, child] : config.children)
    child.config = make_lb_config(PickFirstConfig{});
  policy.update(make_lb_config(config));
  CHECK(asks("a~2").empty());
  CHECK(asks("b") == Texts{"re-resolve"});
  CHECK(asks("b~3") == Texts{"re-resolve"});
}
