// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/tiered.hpp"

#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/tree/cds.hpp"
#include "lb/tree/tiered_picker.hpp"
#include "lb/tree/tiered_rules.hpp"
#include "tests/support/independent_draws.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/property.hpp"
#include "tests/support/tiered_tree.hpp"

namespace tiered_test {

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

constexpr auto kHealthyHosts = Tier::Hosts::kHealthy;
constexpr auto kDegradedHosts = Tier::Hosts::kDegraded;
constexpr auto kAllHosts = Tier::Hosts::kAll;

HostTally hosts(std::uint64_t number) {
  return {number, number};
}

HostReportPtr report(std::vector<PriorityHosts> priorities) {
  auto made = std::make_shared<HostReport>();
  made->priorities = std::move(priorities);
  return made;
}

/// The host report of one priority with `healthy` healthy hosts of `total`.
HostReportPtr fit(std::uint64_t healthy, std::uint64_t total) {
  return report({{hosts(healthy), {}, hosts(total)}});
}

/// A picker that answers with the name of the tier for which the pick asked.
class TierEcho final : public Picker {
 public:
  explicit TierEcho(std::string name) : name_(std::move(name)) {}

  PickResult pick(const PickArgs& args) const override {
    PickResult result;
    const std::string text =
        absl::StrCat(name_,
                     args.tier ? absl::StrCat("/", args.tier->priority, "/", int(args.tier->hosts))
                               : " no tier");
    result.outcome = Fail{absl::UnavailableError(text)};
    return result;
  }

 private:
  std::string name_;
};

/// A tiered policy; the test gives the reports of its leaves.
struct Fixture {
  explicit Fixture(PolicyOptions options = {}) : policy(make_tiered(std::move(options))) {}

  PolicyHarness policy;

  Texts update(const std::vector<std::string>& leaves) {
    TieredConfig config;
    config.cluster = ClusterName("orders");
    for (const std::string& leaf : leaves)
      config.leaves.emplace_back(leaf);
    return policy.update(make_lb_config(config));
  }

  Texts say(const std::string& leaf,
            ConnectivityState state,
            HostReportPtr hosts,
            const std::string& why = "it failed") {
    const auto status = state == kFailure ? absl::UnavailableError(why) : absl::OkStatus();
    return policy.step(ChildStateChanged{ChildName(leaf),
                                         state,
                                         status,
                                         std::make_shared<const TierEcho>(leaf),
                                         policy.generation(),
                                         std::move(hosts)});
  }

  /// The picker's outcomes over all draws, with their frequencies.
  std::map<std::string, int> picks() const {
    std::map<std::string, int> answers;
    for (const std::uint64_t seed : seeds_of_all_draws())
      ++answers[policy.pick("orders", seed)];
    return answers;
  }

  /// The last tiers sent to the leaf, as "0/0 1/2": each with its priority and its Tier::Hosts.
  std::string told(const std::string& leaf) const {
    std::string text = "nothing";
    const auto read = [&](const ChildName& child, const ConfigUpdated& update) {
      if (child != ChildName(leaf)) return;
      text.clear();
      CHECK(std::get<CdsConfig>(*update.config).aggregate == ClusterName("orders"));
      for (const Tier& tier : *std::get<CdsConfig>(*update.config).tiers)
        absl::StrAppend(&text, text.empty() ? "" : " ", tier.priority, "/", int(tier.hosts));
    };
    for (const LbEffect& effect : policy.effects()) {
      if (const auto* start = std::get_if<StartChild>(&effect)) read(start->child, start->update);
      if (const auto* sent = std::get_if<UpdateChild>(&effect)) read(sent->child, sent->update);
    }
    return text;
  }

  /// The last observed loads, "primary/0=70".
  std::map<std::string, std::string> loads() const {
    std::map<std::string, std::string> loads;
    for (const LbEffect& effect : policy.effects()) {
      const auto* observed = std::get_if<Observe>(&effect);
      const auto* load =
          observed == nullptr ? nullptr : std::get_if<TierLoad>(&observed->observation);
      if (load == nullptr) continue;
      const std::string place = absl::StrCat(load->leaf.str(), "/", load->priority);
      loads[place] = load->percent ? absl::StrCat(*load->percent) : "none";
    }
    return loads;
  }
};

}  // namespace

TEST_CASE("tiered: calls wait until the leaves have answered the first configuration",
          "[lb][tiered][ENV-6]") {
  Fixture fixture;
  CHECK(fixture.update({"one", "two"}) ==
        Texts{"start one", "start two", "timer answers 10s", "publish CONNECTING"});
  CHECK(fixture.say("one", kConnecting, fit(1, 1)).empty());
  CHECK(fixture.policy.pick() == "queue");
  fixture.policy.applied("one");
  SECTION("all of them") {
    fixture.say("two", kConnecting, fit(1, 1));
    CHECK(fixture.policy.applied("two") == Texts{"cancel answers",
                                                 "update one",
                                                 "load orders one/0 100",
                                                 "load orders two/0 0",
                                                 "publish CONNECTING",
                                                 "applied 1"});
    CHECK(fixture.picks() == std::map<std::string, int>{{"fail UNAVAILABLE: one/0/0", 100}});
  }
  SECTION("or for one failover window: who is late is skipped") {
    fixture.policy.advance(10s);
    CHECK(fixture.picks() == std::map<std::string, int>{{"fail UNAVAILABLE: one/0/0", 100}});
    CHECK(fixture.told("two").empty());
  }
}

TEST_CASE(
    "tiered: while a configuration is half applied the loads stay, and pickers are the newest",
    "[lb][tiered][ENV-19]") {
  Fixture fixture;
  fixture.update({"one", "two"});
  fixture.say("one", kReady, fit(1, 2));
  fixture.say("two", kReady, fit(1, 1));
  fixture.policy.applied("one");
  fixture.policy.applied("two");
  const std::map<std::string, int> before{{"fail UNAVAILABLE: one/0/0", 70},
                                          {"fail UNAVAILABLE: two/0/0", 30}};
  REQUIRE(fixture.picks() == before);
  fixture.update({"two", "three"});
  fixture.say("one", kReady, fit(2, 2));
  fixture.say("two", kReady, fit(1, 2));
  fixture.say("three", kReady, fit(1, 1));
  CHECK(fixture.picks() == before);
  fixture.policy.step(ChildStateChanged{ChildName("one"), kReady, {}, named_picker("newer"), 1});
  CHECK(fixture.picks() == std::map<std::string, int>{{"fail UNAVAILABLE: newer", 70},
                                                      {"fail UNAVAILABLE: two/0/0", 30}});
  fixture.policy.applied("three");
  const Texts done = fixture.policy.applied("two");
  CHECK(std::ranges::count(done, "stop one") == 1);
  CHECK(fixture.picks() == std::map<std::string, int>{{"fail UNAVAILABLE: two/0/0", 70},
                                                      {"fail UNAVAILABLE: three/0/0", 30}});
  CHECK(fixture.loads() ==
        std::map<std::string, std::string>{{"one/0", "none"}, {"two/0", "70"}, {"three/0", "30"}});
}

TEST_CASE("tiered: a leaf of a list that never came to count is stopped", "[lb][tiered][ENV-2]") {
  Fixture fixture;
  fixture.update({"one"});
  fixture.say("one", kReady, fit(1, 1));
  fixture.policy.applied("one");
  CHECK(fixture.update({"one", "two"}) == Texts{"update one", "start two", "timer answers 10s"});
  fixture.update({"one", "three"});  // The update before is not answered yet.
  fixture.say("three", kReady, fit(1, 1));
  fixture.policy.applied("three");
  const Texts done = fixture.policy.applied("one");
  CHECK(std::ranges::count(done, "stop two") == 1);
  CHECK(std::ranges::count(done, "stop one") + std::ranges::count(done, "stop three") == 0);
  // A leaf that is listed again begins anew.
  const Texts again = fixture.update({"one", "two"});
  CHECK(std::ranges::count(again, "start two") == 1);
}

TEST_CASE(
    "tiered: where some are healthy, and no score reaches 1, the first of them have the calls",
    "[lb][tiered][ENV-7][ENV-30]") {
  Fixture fixture;
  fixture.update({"one", "two"});
  fixture.say("one", kReady, fit(0, 141));
  fixture.say("two", kReady, fit(1, 141));
  for (const char* leaf : {"one", "two"})
    fixture.policy.applied(leaf);
  CHECK(fixture.picks() == std::map<std::string, int>{{"fail UNAVAILABLE: two/0/0", 100}});
  fixture.say("one", kReady, fit(1, 300));
  CHECK(fixture.picks() == std::map<std::string, int>{{"fail UNAVAILABLE: one/0/0", 100}});
  fixture.say("one", kReady, report({{{}, hosts(1), hosts(150)}}));
  CHECK(fixture.picks() == std::map<std::string, int>{{"fail UNAVAILABLE: two/0/0", 100}});
  fixture.say("two", kReady, fit(0, 141));
  CHECK(fixture.picks() == std::map<std::string, int>{{"fail UNAVAILABLE: one/0/1", 100}});
  fixture.say("one", kReady, fit(0, 150));
  CHECK(fixture.policy.pick() ==
        "fail UNAVAILABLE: no endpoint is healthy: one 0 of 150, two 0 of 141");
}

TEST_CASE("tiered: the aggregate's panic threshold comes before the runtime's",
          "[lb][tiered][ENV-31]") {
  PolicyOptions options;
  options.panic_threshold = 60;
  Fixture fixture(options);
  const auto update = [&](std::optional<std::uint32_t> threshold) {
    TieredConfig config{ClusterName("orders"), {ClusterName("one")}, nullptr, threshold};
    fixture.policy.update(make_lb_config(config));
    fixture.say("one", kReady, fit(1, 2));
    fixture.policy.applied("one");
    return fixture.picks();
  };
  const std::map<std::string, int> healthy{{"fail UNAVAILABLE: one/0/0", 100}};
  const std::map<std::string, int> all{{"fail UNAVAILABLE: one/0/2", 100}};
  CHECK(update(std::nullopt) == all);
  CHECK(update(50) == healthy);
  CHECK(update(51) == all);
  CHECK(update(0) == healthy);
  CHECK(update(std::nullopt) == all);
}

TEST_CASE("tiered: a leaf is told its tiers when they change, and nothing of others",
          "[lb][tiered][ENV-25]") {
  Fixture fixture;
  fixture.update({"one", "two"});
  fixture.say("one", kReady, fit(1, 1));
  fixture.say("two", kReady, fit(1, 1));
  fixture.policy.applied("one");
  fixture.policy.applied("two");
  CHECK(fixture.told("one") == "0/0");
  CHECK(fixture.told("two").empty());
  CHECK(fixture.say("one", kReady, fit(1, 2)) ==
        Texts{"update two", "load orders one/0 70", "load orders two/0 30", "publish READY"});
  CHECK(fixture.told("two") == "0/0");
  // The shares are the same as before, so loads are not observed again, and leaves get no update.
  CHECK(fixture.say("two", kReady, fit(3, 3)) == Texts{"publish READY"});
}

TEST_CASE("tiered: its state is that of the leaves with a share", "[lb][tiered]") {
  Fixture fixture;
  fixture.update({"one", "two", "three"});
  const auto say = [&](ConnectivityState one, ConnectivityState two, ConnectivityState three) {
    fixture.say("one", one, fit(1, 2));
    fixture.say("two", two, fit(1, 1));
    fixture.say("three", three, fit(1, 1));
    for (const char* leaf : {"one", "two", "three"})
      fixture.policy.applied(leaf);
    return fixture.policy.published()->state;
  };
  CHECK(say(kConnecting, kConnecting, kReady) == kConnecting);  // The third has no share.
  CHECK(say(kIdle, kConnecting, kReady) == kConnecting);
  CHECK(say(kIdle, kIdle, kReady) == kIdle);
  CHECK(say(kIdle, kReady, kIdle) == kReady);
  CHECK(say(kFailure, kReady, kIdle) == kReady);
  CHECK(say(kFailure, kFailure, kReady) == kFailure);
  CHECK(fixture.policy.published()->status.message() == "cluster two: it failed");
  // A failed leaf that connects again still counts as failed.
  CHECK(say(kConnecting, kFailure, kReady) == kFailure);
  CHECK(say(kReady, kFailure, kReady) == kReady);
}

TEST_CASE("tiered: a leaf that begins anew counts as before, one that cannot be had is skipped",
          "[lb][tiered][ENV-6]") {
  Fixture fixture;
  fixture.update({"one", "two"});
  fixture.say("one", kReady, fit(1, 2));
  fixture.say("two", kReady, fit(1, 1));
  fixture.policy.applied("one");
  fixture.policy.applied("two");
  fixture.say("one", kConnecting, nullptr);
  CHECK(fixture.loads().at("one/0") == "70");
  fixture.say("one", kFailure, nullptr);
  CHECK(fixture.loads() == std::map<std::string, std::string>{{"one/0", "none"}, {"two/0", "100"}});
  fixture.say("two", kFailure, fit(0, 1), "refused");
  CHECK(fixture.policy.pick() ==
        "fail UNAVAILABLE: no endpoint is healthy: one (it failed), two 0 of 1 (refused)");
  CHECK(fixture.policy.published()->state == kFailure);
}

TEST_CASE("tiered: an aggregate without clusters", "[lb][tiered][A75-12]") {
  Fixture fixture;
  fixture.update({});
  CHECK(fixture.policy.pick() == "fail UNAVAILABLE: the aggregate has no clusters");
  fixture.update({"one"});
  fixture.say("one", kReady, fit(1, 1));
  fixture.policy.applied("one");
  CHECK(fixture.policy.pick("orders", 1) == "fail UNAVAILABLE: one/0/0");
  fixture.update({});
  CHECK(fixture.policy.pick() == "fail UNAVAILABLE: the aggregate has no clusters");
}

TEST_CASE("tiered: who wants it out of IDLE wants it of the leaves", "[lb][tiered]") {
  Fixture fixture;
  fixture.update({"one"});
  fixture.say("one", kIdle, fit(1, 1));
  fixture.policy.applied("one");
  CHECK(fixture.policy.step(IdleExitRequested{}) == Texts{"exit-idle one"});
}

TEST_CASE("tiered: the tier is drawn independently of the call's other draws",
          "[lb][tiered][ENV-18]") {
  Fixture fixture;
  fixture.update({"one", "two"});
  fixture.say("one", kReady, fit(1, 2));
  fixture.say("two", kReady, fit(1, 1));
  fixture.policy.applied("one");
  fixture.policy.applied("two");
  check_independent(Salt::kTier, 0.7, [&](std::uint64_t seed) {
    return fixture.policy.pick("", seed) == "fail UNAVAILABLE: one/0/0";
  });
}

TEST_CASE("tiered: an explained pick tells the draw, the loads and the leaf", "[lb][tiered]") {
  Fixture fixture;
  fixture.update({"one", "two"});
  fixture.say("one", kReady, fit(1, 2));
  fixture.say("two", kReady, fit(1, 1));
  fixture.policy.applied("one");
  fixture.policy.applied("two");

  struct Told final : PickTrace {
    std::vector<PickStep> steps;

    void tell(PickStep step) override { steps.push_back(std::move(step)); }
  } told;

  PickArgs args;
  args.seed = seeds_of_all_draws()[70];
  const PickResult result = fixture.policy.published()->picker->explain(args, told);
  CHECK(to_text(result) == "fail UNAVAILABLE: two/0/0");
  CHECK(told.steps == std::vector<PickStep>{{"tiered",
                                             "two priority 0",
                                             "drew 71 of 100; loads: one priority 0 70 %; two "
                                             "priority 0 30 %",
                                             "CDS orders"}});
  // Another leaf now has the same share, and the explanation names it.
  fixture.update({"one", "three"});
  fixture.say("three", kReady, fit(1, 1));
  fixture.policy.applied("one");
  fixture.policy.applied("three");
  told.steps.clear();
  fixture.policy.published()->picker->explain(args, told);
  CHECK(told.steps.front().decision == "three priority 0");
}

// --- above the leaves ---

TEST_CASE("tiered: a leaf knows of unfit endpoints, and of its tiers, under tiered alone",
          "[lb][tiered][cds][ENV-9]") {
  XdsWorld world;
  world.eds("leaf", {"x:a,b?,c-"});
  PolicyHarness policy(make_cds());
  CdsConfig own{ClusterName("leaf")};
  const auto given = [&] {
    EndpointsPtr last;
    for (const LbEffect& effect : policy.effects()) {
      if (const auto* start = std::get_if<StartChild>(&effect)) last = start->update.endpoints;
      if (const auto* sent = std::get_if<UpdateChild>(&effect)) last = sent->update.endpoints;
    }
    return last->priorities.front();
  };
  policy.update(make_lb_config(own), world.config());
  CHECK(given().degraded.empty());
  CHECK(given().unhealthy.empty());
  CHECK(given().localities.size() == 1);
  own.tiers = std::make_shared<const TierSet>();
  policy.update(make_lb_config(own), world.config());
  CHECK(given().degraded.size() == 1);
  CHECK(given().unhealthy.size() == 1);
  // The same tiers are sent again: a child that died and restarted may have older tiers.
  for (const auto& tiers : {TierSet{}, TierSet{}, TierSet{{0, kHealthyHosts}}}) {
    own.tiers = std::make_shared<const TierSet>(tiers);
    const Texts effects = policy.update(make_lb_config(own), world.config());
    CHECK(std::ranges::count(effects, "update child") == 1);
  }
}

TEST_CASE("tiered: which mode an aggregate has is its own word, else the runtime's",
          "[lb][tiered][cds][ENV-2]") {
  const auto runtimes = GENERATE(AggregateMode::kPriority, AggregateMode::kTiered);
  using Said = std::optional<AggregateMode>;
  const auto said = GENERATE(Said(), Said(AggregateMode::kPriority), Said(AggregateMode::kTiered));
  XdsWorld world;
  world.eds("leaf", {"x:a"});
  world.aggregate("orders", {"leaf"}, said);
  PolicyHarness policy(make_cds(runtimes));
  policy.update(make_lb_config(CdsConfig{ClusterName("orders")}), world.config());
  const auto& start = std::get<StartChild>(policy.effects().front());
  const bool is_tiered = said.value_or(runtimes) == AggregateMode::kTiered;
  CHECK(policy_name(*start.update.config) == (is_tiered ? "tiered" : "priority"));
}

// --- the rules ---

namespace {

std::string text_of(const std::vector<TierShare>& shares) {
  std::string text;
  for (const TierShare& share : shares)
    absl::StrAppend(&text,
                    text.empty() ? "" : " ",
                    share.leaf,
                    "/",
                    share.tier.priority,
                    "/",
                    int(share.tier.hosts),
                    "=",
                    share.percent);
  return text;
}

}  // namespace

TEST_CASE("tiered_rules: who is connected: all up to where the scores reach 100",
          "[lb][tiered][ENV-25]") {
  const std::vector<HostReportPtr> leaves{
      report({{hosts(1), hosts(1), hosts(2)}, {hosts(1), hosts(0), hosts(1)}}),
      report({{hosts(1), {}, hosts(1)}})};
  TierPlan plan = plan_tiers(leaves, 0);
  CHECK(text_of(plan.shares) == "0/0/0=70 0/1/0=30");
  CHECK(plan.connected == std::vector<TierSet>{{{0, kHealthyHosts}, {1, kHealthyHosts}}, {}});
  // Priority 1 of the first leaf has failed, and stays connected. Degraded hosts get what the
  // healthy hosts of all priorities leave.
  const std::vector<HostReportPtr> failing{
      report({{hosts(1), hosts(1), hosts(4)}, {hosts(0), hosts(0), hosts(1)}}),
      report({{hosts(1), hosts(0), hosts(4)}, {hosts(0), hosts(4), hosts(4)}})};
  plan = plan_tiers(failing, 0);
  CHECK(text_of(plan.shares) == "0/0/0=35 1/0/0=35 0/0/1=30");
  CHECK(plan.connected ==
        std::vector<TierSet>{{{0, kHealthyHosts}, {1, kHealthyHosts}, {0, kDegradedHosts}},
                             {{0, kHealthyHosts}, {1, kHealthyHosts}}});
}

TEST_CASE("tiered_rules: a priority in panic has its calls at all of its hosts, and is judged on",
          "[lb][tiered][ENV-17]") {
  const std::vector<HostReportPtr> leaves{report({{hosts(0), {}, hosts(3)}}), fit(1, 2)};
  const TierPlan plan = plan_tiers(leaves, 30);
  CHECK(text_of(plan.shares) == "1/0/0=100");
  const std::vector<HostReportPtr> nobody{report({{hosts(0), {}, hosts(3)}}), fit(0, 1)};
  const TierPlan total = plan_tiers(nobody, 30);
  CHECK(text_of(total.shares) == "0/0/2=75 1/0/2=25");
  CHECK(total.connected[1] == TierSet{{0, kHealthyHosts}, {0, kDegradedHosts}, {0, kAllHosts}});
}

TEST_CASE("tiered_rules: panic goes by numbers of hosts, whatever weighs", "[lb][tiered][ENV-17]") {
  const auto weighted = [](PriorityHosts hosts) {
    auto made = std::make_shared<HostReport>(*report({hosts}));
    made->weighted = true;
    return made;
  };
  // One of two hosts is fit, and has a hundredth of the weight. Scores are computed from weights,
  // panic from numbers of hosts.
  const std::vector<HostReportPtr> half{weighted({{1, 1}, {}, {2, 100}}), fit(1, 4)};
  CHECK(text_of(plan_tiers(half, 50).shares) == "0/0/0=3 1/0/2=97");
  CHECK(text_of(plan_tiers(half, 51).shares) == "0/0/2=3 1/0/2=97");
  // Degraded hosts are as good as healthy ones here: two of four hosts are one or the other.
  const std::vector<HostReportPtr> both{weighted({{1, 1}, {1, 1}, {4, 100}}), fit(1, 4)};
  CHECK(text_of(plan_tiers(both, 50).shares).find("0/0/2") == std::string::npos);
  CHECK(text_of(plan_tiers(both, 51).shares).find("0/0/2") != std::string::npos);
  const std::vector<HostReportPtr> nobody{weighted({{}, {}, {3, 1'000}}), fit(0, 1)};
  CHECK(text_of(plan_tiers(nobody, 50).shares) == "0/0/2=75 1/0/2=25");
}

TEST_CASE("tiered_rules: weights count where the leaf says so", "[lb][tiered][ENV-7][ENV-9]") {
  auto weighted = std::make_shared<HostReport>();
  weighted->priorities = {{{1, 7}, {}, {4, 10}}};
  weighted->weighted = true;
  CHECK(text_of(plan_tiers(std::vector<HostReportPtr>{weighted, fit(1, 1)}, 0).shares) ==
        "0/0/0=98 1/0/0=2");
  auto exact = std::make_shared<HostReport>(*fit(1, 2));
  exact->overprovisioning_percent = 100;
  CHECK(text_of(plan_tiers(std::vector<HostReportPtr>{exact, fit(1, 1)}, 0).shares) ==
        "0/0/0=50 1/0/0=50");
}

TEST_CASE("tiered_rules: shares are 100 or none, and whoever has one is connected",
          "[lb][tiered][ENV-14][ENV-23][ENV-25]") {
  const auto shares = [] {
    const auto number = [] { return *rc::gen::inRange<std::uint64_t>(0, 8); };
    std::vector<HostReportPtr> leaves;
    const auto size = *rc::gen::inRange<std::size_t>(0, 5);
    for (std::size_t leaf = 0; leaf < size; ++leaf) {
      auto made = std::make_shared<HostReport>();
      const auto priorities = *rc::gen::inRange<std::size_t>(0, 4);
      for (std::size_t at = 0; at < priorities; ++at) {
        const auto healthy = number();
        const auto degraded = number();
        made->priorities.push_back(
            {hosts(healthy), hosts(degraded), hosts(healthy + degraded + number())});
      }
      leaves.push_back(number() == 0 ? nullptr : made);
    }
    const auto threshold = *rc::gen::element<std::uint32_t>(0, 50, 100);
    const TierPlan plan = plan_tiers(leaves, threshold);
    std::uint32_t all = 0;
    bool is_any_fit = false;
    bool is_any_there = false;
    for (const TierRow& row : plan.rows) {
      RC_ASSERT(row.health.total > 0U);
      is_any_there = true;
      is_any_fit |= row.health.healthy + row.health.degraded > 0;
    }
    for (const TierShare& share : plan.shares) {
      RC_ASSERT(share.percent > 0U);
      all += share.percent;
      RC_ASSERT(plan.connected[share.leaf].contains(share.tier));
      const bool panics = share.tier.hosts == kAllHosts;
      RC_ASSERT(!panics || threshold > 0);
    }
    RC_ASSERT(all == ((threshold > 0 ? is_any_there : is_any_fit) ? 100U : 0U));
  };
  CHECK(holds("shares", 1'000, shares));
}

TEST_CASE("tiered_picker: each draw has its share, in order", "[lb][tiered][ENV-18]") {
  const TierTable table(
      {{1, {0, kHealthyHosts}, 16}, {0, {2, kHealthyHosts}, 42}, {1, {0, kDegradedHosts}, 42}});
  const auto at = [&](std::uint64_t draw) { return table.shares()[table.place(draw)]; };
  CHECK(at(0).tier == Tier{0, kHealthyHosts});
  CHECK(at(15).percent == 16);
  CHECK(at(16).leaf == 0);
  CHECK(at(57).leaf == 0);
  CHECK(at(58).tier == Tier{0, kDegradedHosts});
  CHECK(at(99).tier == Tier{0, kDegradedHosts});
  CHECK_THROWS(TierTable({{0, {}, 99}}));
  CHECK_THROWS(TierTable({{0, {}, 101}}));
}

}  // namespace tiered_test
