// SPDX-License-Identifier: Apache-2.0
//
// Explanation and pick agree for ten thousand calls in random worlds. Each world has a twin in
// which nothing is explained; both worlds pick the same.
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include <catch2/catch.hpp>

#include "lb/request_limit.hpp"
#include "tests/support/session_fixture.hpp"
#include "tests/support/step_log.hpp"
#include "tests/support/tree_harness.hpp"
#include "tests/support/xds_world.hpp"

namespace signalbox::test {
namespace {

using testing::aborting;
using testing::base64;
using testing::both;
using testing::config_of;
using testing::delaying;
using testing::filter;
using testing::percent;
using testing::prefix;
using testing::route;
using testing::session_by;
using testing::TestHeaders;

// Random numbers that depend on the seed and on the number of earlier draws alone.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t below(std::uint64_t bound) {
    return draw_below(seed_, Salt::kFilter, bound, ++draws_);
  }

  bool one_in(std::uint64_t count) { return below(count) == 0; }

  template <typename T>
  const T& of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
};

LbConfigPtr some_policy(Dice& dice) {
  const auto weighted = [](LbConfigPtr child) {
    return make_lb_config(WrrLocalityConfig{std::move(child)});
  };
  const SlowStart slow_start{std::chrono::seconds(40)};
  switch (dice.below(11)) {
    case 9:
      return weighted(make_lb_config(LeastRequestConfig{2, slow_start}));
    case 10:
      return weighted(make_lb_config(RoundRobinConfig{slow_start}));
    case 0:
      return weighted(make_lb_config(LeastRequestConfig{}));
    case 1:
      return make_lb_config(RingHashConfig{});
    case 2:
      return make_lb_config(PickFirstConfig{});
    case 3:
      return weighted(make_lb_config(RandomConfig{}));
    case 4:
      return make_lb_config(MaglevConfig{251});
    case 5:
      return weighted(make_lb_config(WeightedRoundRobinConfig{}));
    case 6:
      return make_lb_config(RandomSubsettingConfig{2, make_lb_config(RoundRobinConfig{})});
    default:
      return weighted(make_lb_config(RoundRobinConfig{}));
  }
}

// One world: a tree above a random network, and a router over the tree's pickers.
class World {
 public:
  explicit World(std::uint64_t seed)
      : dice_(seed),
        router_(cell_, {"xds:///orders", "n"}, std::make_shared<const lb::Sessions>(terms())) {
    xds_.sessions(true);
    std::vector<std::string> leaves;
    for (std::uint64_t i = 0; i <= dice_.below(3); ++i)
      leaves.push_back(add_leaf(i));
    clusters_ = leaves;
    if (leaves.size() > 1) {
      xds_.aggregate(
          "all", leaves, dice_.one_in(2) ? AggregateMode::kTiered : AggregateMode::kPriority);
      clusters_.emplace_back("all");
    }
    for (std::size_t i = 0; i < 4; ++i)
      turn();
    routes_ = with_chain(config_of(some_routes()));
    refs_ = testing::refs_for(routes_);
    tree_.apply(manager_of(clusters_), xds_.config());
    publish();
  }

  // A random event.
  void turn() {
    const std::string& address = dice_.of(addresses_);
    switch (dice_.below(5)) {
      case 0:
        tree_.down(address);
        break;
      case 1:
        tree_.silence(address);
        break;
      default:
        tree_.up(address);
    }
    if (has_tree_) tree_.advance(std::chrono::seconds(dice_.below(8)));
    if (has_tree_) publish();
  }

  struct Answer {
    PickOutcome outcome{};
    std::string cluster;
    std::string address;
    absl::Status status;
    Duration delay{};

    friend bool operator==(const Answer&, const Answer&) = default;

    friend std::ostream& operator<<(std::ostream& out, const Answer& it) {
      return out << static_cast<int>(it.outcome) << " cluster " << it.cluster << ", " << it.address
                 << " " << it.status.ToString() << ", delayed " << lb::shown(it.delay);
    }
  };

  // The next call of this world; its picks and its explanation share these arguments.
  void next_call() {
    seed_ = dice_.below(1'000'000'000);
    path_ = dice_.one_in(8) ? "/nowhere/M" : absl::StrCat("/s", dice_.below(2), "/M");
    TestHeaders::List list;
    if (dice_.one_in(2)) list.emplace_back("x-user", absl::StrCat("u", dice_.below(3)));
    if (dice_.one_in(2)) list.emplace_back("cookie", "s=" + some_cookie());
    headers_ = TestHeaders(std::move(list));
  }

  Explanation explain() const { return router_.explain({path_, &headers_, seed_}, tree_.now()); }

  static Answer of(const Explanation& told) {
    return {told.outcome, told.cluster, told.address, told.status, told.delay};
  }

  Answer pick() {
    lb::Pick pick = router_.pick({path_, &headers_, seed_});
    Answer answer;
    if (pick.delay() > Duration::zero()) {
      answer.delay = pick.delay();
      pick.end_delay();
      router_.repick(pick, {path_, &headers_, seed_});
    }
    answer.outcome = pick.outcome();
    if (pick.cluster() != nullptr) answer.cluster = pick.cluster()->name().str();
    if (pick.connection() != nullptr) answer.address = pick.connection()->address().str();
    answer.status = pick.status();
    // The last three calls keep running, so that limits are reached.
    running_.push_back(std::move(pick));
    if (running_.size() > 3) running_.pop_front();
    tree_.settle();
    publish();
    return answer;
  }

  // Counts that calls change: of picks and sessions, of active faults, of messages.
  std::string counts() const {
    std::string text;
    for (const auto& [name, ref] : refs_) {
      for (std::size_t i = 0; i < kPickOutcomes; ++i)
        absl::StrAppend(&text, ref->stats()->picks(static_cast<PickOutcome>(i)), " ");
      for (std::size_t i = 0; i < kAffinityResults; ++i)
        absl::StrAppend(&text, ref->stats()->affinity(static_cast<AffinityResult>(i)), " ");
    }
    return absl::StrCat(text, faults_.active->in_flight(), " ", tree_.messages());
  }

 private:
  lb::SessionTerms terms() {
    lb::SessionTerms terms;
    terms.target = "xds:///orders";
    terms.now = [this] { return tree_.now(); };
    return terms;
  }

  std::string add_leaf(std::uint64_t number) {
    XdsWorld::Priorities priorities;
    for (std::uint64_t priority = 0; priority <= dice_.below(3); ++priority) {
      std::vector<std::string> localities;
      for (std::uint64_t i = 0; i <= dice_.below(3); ++i) {
        std::vector<std::string> endpoints;
        for (std::uint64_t k = 0; k <= dice_.below(3); ++k) {
          addresses_.push_back(absl::StrCat("10.0.", number, ".", addresses_.size(), ":80"));
          const std::string healths = "!?-        ";  // DRAINING, DEGRADED, UNHEALTHY, or fit.
          const char health = healths[dice_.below(healths.size())];
          endpoints.push_back(addresses_.back() + (health == ' ' ? "" : std::string(1, health)));
        }
        localities.push_back(absl::StrCat(
            "z", priority, i, "*", 1 + dice_.below(3), ":", absl::StrJoin(endpoints, ",")));
      }
      priorities.push_back(absl::StrJoin(localities, " "));
    }
    ClusterExtras extras;
    if (dice_.one_in(3))
      extras.max_concurrent_requests = static_cast<std::uint32_t>(dice_.below(3));
    if (dice_.one_in(3)) extras.drops = {{"lb", 200'000}, {"throttle", 100'000}};
    if (dice_.one_in(3)) {
      extras.outlier_detection.emplace();
      extras.outlier_detection->failure_percentage = OutlierDetection::FailurePercentage{};
    }
    const std::string name = absl::StrCat("c", number);
    xds_.eds(name, priorities, some_policy(dice_), extras);
    return name;
  }

  std::vector<Route> some_routes() {
    std::vector<Route> routes;
    for (std::uint64_t i = 0; i < 2 + dice_.below(10); ++i) {
      std::vector<std::pair<std::string, std::uint32_t>> shares;
      shares.reserve(clusters_.size());
      for (const std::string& cluster : clusters_)
        shares.emplace_back(cluster, static_cast<std::uint32_t>(1 + dice_.below(3)));
      ForwardAction action = testing::to(shares);
      if (dice_.one_in(2)) action.hash_policies.push_back({HeaderHash{"x-user", std::nullopt}});
      Route made = route(prefix(absl::StrCat("/s", dice_.below(3))), action);
      if (dice_.one_in(3)) made.match.fraction_per_million = 500'000;
      if (dice_.one_in(4))
        made.match.headers.push_back({"x-user", testing::exact("u1"), dice_.one_in(3)});
      routes.push_back(std::move(made));
    }
    return routes;
  }

  XdsConfig with_chain(XdsConfig config) {
    std::vector<HttpFilter> chain;
    if (dice_.one_in(2)) {
      FaultFilter fault = both(delaying(std::chrono::seconds(1), percent(20)),
                               aborting(absl::StatusCode::kAborted, percent(20)));
      if (dice_.one_in(2)) fault.max_active_faults = 1;
      chain.push_back(filter("fault", fault));
    }
    if (dice_.one_in(2))
      chain.push_back(filter("session", session_by("s", "", {}, dice_.one_in(3))));
    return testing::with_filters(std::move(config), std::move(chain));
  }

  std::string some_cookie() {
    if (dice_.one_in(8)) return "!";
    std::string hosts = dice_.one_in(6) ? "10.9.9.9:1" : dice_.of(addresses_);
    if (dice_.one_in(3)) absl::StrAppend(&hosts, ",", dice_.of(addresses_));
    if (dice_.one_in(2)) absl::StrAppend(&hosts, ";", dice_.of(clusters_));
    return base64(hosts);
  }

  void publish() {
    has_tree_ = true;
    if (tree_.picker() == published_) return;
    published_ = tree_.picker();
    if (selector_ == nullptr) selector_ = lb::make_config_selector(routes_, refs_, 0, faults_);
    auto snapshot = std::make_unique<lb::Snapshot>();
    snapshot->selector = selector_;
    snapshot->picker = published_;
    snapshot->sequence = ++sequence_;
    const auto old = cell_->exchange(std::move(snapshot));
    lb::SnapshotCell::wait_for_readers();
  }

  Dice dice_;
  std::vector<std::string> addresses_;
  std::vector<std::string> clusters_;
  XdsWorld xds_;
  TreeHarness tree_;
  bool has_tree_ = false;
  XdsConfig routes_;
  lb::ClusterRefs refs_;
  lb::FaultOptions faults_{std::make_shared<const lb::RequestLimit>(), nullptr};
  lb::ConfigSelectorPtr selector_;
  PickerPtr published_;
  std::uint64_t sequence_ = 0;
  std::shared_ptr<lb::SnapshotCell> cell_ = std::make_shared<lb::SnapshotCell>();
  lb::Router router_;
  std::deque<lb::Pick> running_;
  std::uint64_t seed_ = 0;
  std::string path_;
  TestHeaders headers_{TestHeaders::List{}};
};

std::string lines_of(const Explanation& told) {
  std::string text;
  for (const PickStep& step : told.steps)
    absl::StrAppend(&text, testing::to_line(step), "\n");
  return text;
}

}  // namespace

TEST_CASE("explain: says what is picked, and changes nothing, in 10,000 random cases",
          "[lb][explain]") {
  constexpr std::uint64_t kWorlds = 200;
  constexpr int kCalls = 50;
  std::set<PickOutcome> outcomes;
  std::set<std::string> parts;
  std::set<std::string> sourceless;  // Parts that do not say which resource decides.
  std::size_t failures = 0;
  for (std::uint64_t seed = 1; seed <= kWorlds && failures == 0; ++seed) {
    World world(seed);
    World twin(seed);
    for (int call = 0; call < kCalls && failures == 0; ++call) {
      if (call % 5 == 4) {
        world.turn();
        twin.turn();
      }
      world.next_call();
      twin.next_call();
      const std::string before = world.counts();
      const Explanation told = world.explain();
      const Explanation again = world.explain();
      const bool is_untouched = world.counts() == before && again.steps == told.steps;
      const World::Answer picked = world.pick();
      const World::Answer undisturbed = twin.pick();
      const World::Answer said = World::of(told);
      outcomes.insert(told.outcome);
      for (const PickStep& step : told.steps) {
        parts.insert(step.part);
        if (step.source.empty()) sourceless.insert(step.part);
      }
      const bool is_good = is_untouched && said == picked && picked == undisturbed &&
                           world.counts() == twin.counts();
      if (is_good) continue;
      ++failures;
      INFO("world " << seed << ", call " << call << "\n" << lines_of(told));
      CHECK(is_untouched);
      CHECK(said == picked);
      CHECK(picked == undisturbed);
      CHECK(world.counts() == twin.counts());
    }
  }
  CHECK(failures == 0);
  // Only the step of a picker that belongs to no policy has no resource.
  CHECK(sourceless == std::set<std::string>{"picker"});
  // The random cases cover all outcomes.
  CHECK(outcomes.size() == kPickOutcomes);
  for (const char* part : {"route",
                           "fault",
                           "stateful_session",
                           "cluster_impl",
                           "outlier_detection",
                           "override_host",
                           "priority",
                           "tiered",
                           "leaf_tiers",
                           "weighted_target",
                           "round_robin",
                           "least_request",
                           "ring_hash",
                           "pick_first"}) {
    INFO(part);
    CHECK(parts.contains(part));
  }
}

}  // namespace signalbox::test
