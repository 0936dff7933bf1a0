// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cluster_impl.hpp"

#include <algorithm>
#include <optional>
#include <variant>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "lb/request_limit.hpp"
#include "tests/support/independent_draws.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/scripted_picker.hpp"
#include "tests/support/step_log.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Texts = std::vector<std::string>;

constexpr std::uint32_t kAll = 1'000'000;

/// Counters of drops by name, as Instruments has them.
class Counters final : public DropCounters {
 public:
  EventCountPtr drops(const ClusterName& cluster, absl::string_view category) override {
    return count(cluster.str() + "/" + std::string(category));
  }

  EventCountPtr breaker_drops(const ClusterName& cluster) override { return count(cluster.str()); }

  std::int64_t sum(const std::string& name) { return count(name)->sum(0); }

 private:
  EventCountPtr count(const std::string& name) {
    EventCountPtr& count = counts_[name];
    if (count == nullptr) count = std::make_shared<const EventCount>();
    return count;
  }

  std::map<std::string, EventCountPtr> counts_;
};

EndpointsPtr dropping(std::vector<DropCategory> drops) {
  auto endpoints = std::make_shared<Endpoints>();
  endpoints->priorities.emplace_back();
  endpoints->drops = std::move(drops);
  return endpoints;
}

/// Counters of each leaf, as a channel has them.
class LeafCounters final : public CallCounters {
 public:
  std::shared_ptr<const CallStats> of_leaf(const ClusterName& aggregate,
                                           const ClusterName& leaf) override {
    auto& stats = stats_[aggregate.str() + "/" + leaf.str()];
    if (stats == nullptr) stats = std::make_shared<const CallStats>();
    return stats;
  }

 private:
  std::map<std::string, std::shared_ptr<const CallStats>> stats_;
};

/// Keeps replaced objects alive, because calls may still use them.
class Attic final : public Retirement {
 public:
  void retire(std::unique_ptr<const Tracked> object) override {
    objects_.push_back(std::move(object));
  }

 private:
  std::vector<std::unique_ptr<const Tracked>> objects_;
};

/// Counters of each endpoint, as Instruments has them. There is room for `most` endpoints.
class CountedEndpoints final : public EndpointCounters {
 public:
  explicit CountedEndpoints(std::size_t most) : most_(most) {}

  EndpointCallsPtr endpoint(const ClusterName& cluster, const Address& address) override {
    const std::string name = cluster.str() + "/" + address.str();
    if (counts_.size() >= most_ && !counts_.contains(name)) return nullptr;
    return count(counts_, name);
  }

  EndpointCallsPtr other_endpoints(const ClusterName& cluster) override {
    return count(others_, cluster.str());
  }

  std::int64_t calls(const std::string& name, int code = 0) {
    const auto found = counts_.find(name);
    return found == counts_.end() ? -1 : found->second->sum(place_of_code(code));
  }

  std::int64_t others(const std::string& cluster) { return count(others_, cluster)->sum(0); }

 private:
  using Counts = std::map<std::string, EndpointCallsPtr>;

  static EndpointCallsPtr count(Counts& counts, const std::string& name) {
    EndpointCallsPtr& calls = counts[name];
    if (calls == nullptr) calls = std::make_shared<const EndpointCalls>();
    return calls;
  }

  const std::size_t most_;
  Counts counts_;
  Counts others_;
};

struct World {
  PolicyHarness policy() const {
    PolicyContext context;
    context.retirement = attic;
    context.options.request_limits = limits;
    context.options.drop_counters = counters;
    context.options.call_counters = calls;
    context.options.endpoint_counters = endpoints;
    return PolicyHarness(make_cluster_impl(std::move(context)));
  }

  std::shared_ptr<Attic> attic = std::make_shared<Attic>();
  std::shared_ptr<RequestLimits> limits = std::make_shared<RequestLimits>();
  std::shared_ptr<Counters> counters = std::make_shared<Counters>();
  std::shared_ptr<LeafCounters> calls = std::make_shared<LeafCounters>();
  std::shared_ptr<CountedEndpoints> endpoints = nullptr;
};

EndpointsPtr endpoints_at(const std::vector<std::string>& addresses) {
  auto locality = std::make_shared<Locality>();
  for (const std::string& address : addresses)
    locality->endpoints.push_back({.addresses = {Address(address)}});
  auto endpoints = std::make_shared<Endpoints>();
  endpoints->priorities.push_back({.localities = {locality}});
  return endpoints;
}

LbConfigPtr config_of(std::uint32_t most = 1024,
                      const std::string& service = "service",
                      const std::string& cluster = "c") {
  static const LbConfigPtr child = make_lb_config(OverrideHostConfig{});
  return make_lb_config(ClusterImplConfig{ClusterName(cluster), child, service, most});
}

void ready(PolicyHarness& policy) {
  static const auto backend = std::make_shared<const Connection>(Address("10.0.0.1:80"));
  policy.step(ChildStateChanged{ChildName("child"),
                                kReady,
                                absl::OkStatus(),
                                make_connection_picker(backend),
                                policy.generation()});
}

/// A pick, and the router's part after it: the call passes the gate and is tracked. `text` is the
/// answer of the pick, or the refusal of the gate.
struct Call {
  explicit Call(const PolicyHarness& policy, std::uint64_t seed = 1) {
    PickArgs args;
    args.seed = seed;
    const PickResult result = policy.published()->picker->pick(args);
    text = to_text(result);
    if (!std::holds_alternative<Complete>(result.outcome)) return;
    const CallGate* const gate = result.trackers.gate();
    if (gate != nullptr && !gate->enter()) {
      text = "refused " + std::string(gate->refuse().message());
      return;
    }
    tracking = Tracking(result.trackers);
  }

  bool runs() const { return absl::StartsWith(text, "complete"); }

  std::string text;
  Tracking tracking;
};

}  // namespace

TEST_CASE("cluster_impl: says what the child says", "[lb][cluster_impl][A37-28]") {
  const World world;
  PolicyHarness policy = world.policy();
  CHECK(policy.update(config_of()) == Texts{"breaker c 1024", "start child", "publish CONNECTING"});
  CHECK(policy.published()->picker == make_queue_picker());
  CHECK(policy.child("child", kReady) == Texts{"publish READY"});
  CHECK(policy.pick() == "fail UNAVAILABLE: child READY");
  CHECK(policy.child("child", kFailure) == Texts{"publish TRANSIENT_FAILURE"});
  CHECK(policy.published()->status == absl::UnavailableError("child failed"));
  CHECK(policy.applied("child") == Texts{"applied 1"});
  CHECK(policy.step(IdleExitRequested{}) == Texts{"exit-idle child"});
  CHECK(policy.update(config_of()) == Texts{"update child"});
  CHECK(policy.child("stranger", kReady).empty());
}

TEST_CASE("cluster_impl: drops in every state of the child, and without endpoints",
          "[lb][cluster_impl][A37-27][A37-30][A37-31]") {
  const World world;
  PolicyHarness policy = world.policy();
  policy.update(config_of(), nullptr, dropping({{"lb", kAll}}));
  const std::string dropped =
      "drop UNAVAILABLE: cluster c: the control plane drops calls of "
      "category \"lb\"";
  CHECK(policy.pick() == dropped);  // The child has not reported yet.
  std::int64_t drops = 1;
  for (const auto state : {kConnecting, kIdle, kReady, kFailure}) {
    policy.child("child", state);
    CHECK(policy.published()->state == state);
    CHECK(policy.pick() == dropped);
    CHECK(world.counters->sum("c/lb") == ++drops);
  }
  CHECK(world.counters->sum("c") == 0);

  SECTION("until the control plane says otherwise") {
    CHECK(policy.update(config_of(), nullptr, dropping({{"lb", 0}})) ==
          Texts{"update child", "publish TRANSIENT_FAILURE"});
    CHECK(policy.pick() == "fail UNAVAILABLE: child TRANSIENT_FAILURE");
    CHECK(world.counters->sum("c/lb") == drops);
  }
}

TEST_CASE("cluster_impl: the first category that draws a call has it",
          "[lb][cluster_impl][A37-27][A37-30]") {
  const World world;
  PolicyHarness policy = world.policy();
  policy.update(config_of(), nullptr, dropping({{"none", 0}, {"half", kAll / 2}, {"rest", kAll}}));
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    REQUIRE(absl::StartsWith(policy.pick("", seed), "drop"));
  CHECK(world.counters->sum("c/none") == 0);
  CHECK(world.counters->sum("c/half") > 400);
  CHECK(world.counters->sum("c/rest") > 400);
  CHECK(world.counters->sum("c/half") + world.counters->sum("c/rest") == 1000);
}

TEST_CASE("cluster_impl: a category draws independently of the call's other draws",
          "[lb][cluster_impl]") {
  const World world;
  PolicyHarness policy = world.policy();
  policy.update(config_of(), nullptr, dropping({{"half", kAll / 2}}));
  ready(policy);
  check_independent(Salt::kDrop, 0.5, [&](std::uint64_t seed) {
    return absl::StartsWith(policy.pick("", seed), "drop");
  });
}

TEST_CASE("cluster_impl: a drop that is only explained is not counted",
          "[lb][cluster_impl][explain]") {
  struct Unheard final : PickTrace {
    void tell(PickStep /*step*/) override {}
  };

  const World world;
  PolicyHarness policy = world.policy();
  policy.update(config_of(), nullptr, dropping({{"all", kAll}}));
  const auto published = std::ranges::find_if(policy.effects(), [](const LbEffect& effect) {
    return std::holds_alternative<Publish>(effect);
  });
  REQUIRE(published != policy.effects().end());
  Unheard trace;
  const PickResult result = std::get<Publish>(*published).picker->explain({.path = "/s/M"}, trace);
  CHECK(std::holds_alternative<Drop>(result.outcome));
  CHECK(world.counters->sum("c/all") == 0);
}

TEST_CASE("cluster_impl: no tracker counts an explained call, and each category is told",
          "[lb][cluster_impl][explain]") {
  const World world;
  PolicyHarness policy = world.policy();
  policy.update(config_of(), nullptr, dropping({{"none", 0}, {"least", 1}}));
  ready(policy);
  testing::StepLog log;
  const PickResult told = policy.published()->picker->explain({.seed = 1}, log.trace);
  CHECK(to_text(told) == "complete 10.0.0.1:80");
  CHECK(told.trackers.begin() == told.trackers.end());
  CHECK(told.trackers.gate() == nullptr);
  REQUIRE_FALSE(log.lines.empty());
  CHECK(absl::StartsWith(log.lines.front(), "cluster_impl: not dropped by category \"least\"; "));
}

TEST_CASE("cluster_impl: a pick with more trackers than a call can hold is dropped",
          "[lb][cluster_impl]") {
  struct Idle final : CallTracker {
    void ended(const CallEnd& /*end*/) const noexcept override {}
  };

  const Idle tracker;
  const Connection backend{Address("10.0.0.1:80")};
  const World world;
  PolicyHarness policy = world.policy();
  policy.update(config_of());
  policy.step(ChildStateChanged{ChildName("child"),
                                kReady,
                                absl::OkStatus(),
                                testing::answering([&](const PickArgs&) {
                                  PickResult full;
                                  full.outcome = Complete(&backend);
                                  for (std::size_t i = 0; i < TrackerList::kMost; ++i)
                                    full.trackers.add(tracker);
                                  return full;
                                }),
                                policy.generation()});
  CHECK(policy.pick() == "drop INTERNAL: a pick names too many trackers");
}

TEST_CASE("cluster_impl: the most calls in flight, and no more",
          "[lb][cluster_impl][A32][A37-27][A37-30]") {
  const World world;
  PolicyHarness policy = world.policy();
  const std::uint32_t most = GENERATE(0U, 1U, 3U);
  policy.update(config_of(most));
  ready(policy);
  std::vector<Call> calls;
  for (std::uint32_t i = 0; i < most; ++i) {
    calls.emplace_back(policy);
    REQUIRE(calls.back().runs());
  }
  const Call refused(policy);
  CHECK(refused.text == "refused cluster c: circuit breaker: " + std::to_string(most) +
                            " calls in flight, the limit; "
                            "circuit_breakers.thresholds.max_requests raises it");
  CHECK(world.counters->sum("c") == 1);
  if (most > 0) {
    calls.pop_back();
    CHECK(Call(policy).runs());
  }
}

TEST_CASE("cluster_impl: counts calls by endpoint when the program asks for it",
          "[lb][cluster_impl][metrics]") {
  World world;
  const auto trackers_of_a_pick = [](const PolicyHarness& policy) {
    const PickResult result = policy.published()->picker->pick({});
    return result.trackers.end() - result.trackers.begin();
  };
  SECTION("and otherwise a call has the gate alone") {
    PolicyHarness policy = world.policy();
    policy.update(config_of(), nullptr, endpoints_at({"10.0.0.1:80"}));
    ready(policy);
    CHECK(trackers_of_a_pick(policy) == 1);
  }
  SECTION("by the code, once a call has reached the endpoint") {
    world.endpoints = std::make_shared<CountedEndpoints>(/*most=*/1);
    PolicyHarness policy = world.policy();
    policy.update(config_of(), nullptr, endpoints_at({"10.0.0.1:80", "10.0.0.2:80"}));
    ready(policy);
    CHECK(trackers_of_a_pick(policy) == 2);
    for (const CallEnd end : {CallEnd{0}, CallEnd{0}, CallEnd{14}, CallEnd{std::nullopt}}) {
      Call call(policy);
      REQUIRE(call.runs());
      call.tracking.end(end);
    }
    CHECK(world.endpoints->calls("c/10.0.0.1:80") == 2);
    CHECK(world.endpoints->calls("c/10.0.0.1:80", 14) == 1);
    CHECK(world.endpoints->others("c") == 0);
  }
  SECTION(
      "an endpoint beyond the limit, or without a place in the configuration, as one of others") {
    world.endpoints = std::make_shared<CountedEndpoints>(/*most=*/1);
    PolicyHarness policy = world.policy();
    const auto assignment = GENERATE(0, 1, 2);
    policy.update(config_of(),
                  nullptr,
                  assignment == 0   ? endpoints_at({"10.0.0.9:80", "10.0.0.1:80"})
                  : assignment == 1 ? endpoints_at({})
                                    : nullptr);
    ready(policy);
    Call(policy).tracking.end({0});
    CHECK(world.endpoints->others("c") == 1);
    CHECK(world.endpoints->calls("c/10.0.0.1:80") == -1);
  }
  SECTION("over changes of the endpoints") {
    world.endpoints = std::make_shared<CountedEndpoints>(/*most=*/9);
    PolicyHarness policy = world.policy();
    policy.update(config_of(), nullptr, endpoints_at({"10.0.0.1:80"}));
    ready(policy);
    Call during(policy);
    policy.update(config_of(), nullptr, endpoints_at({"10.0.0.2:80", "10.0.0.1:80"}));
    Call(policy).tracking.end({0});
    during.tracking.end({0});
    CHECK(world.endpoints->calls("c/10.0.0.1:80") == 2);
    CHECK(world.endpoints->calls("c/10.0.0.2:80") == 0);
    policy.update(config_of(1024, "service", "d"), nullptr, endpoints_at({"10.0.0.1:80"}));
    Call(policy).tracking.end({0});
    CHECK(world.endpoints->calls("c/10.0.0.1:80") == 2);
    CHECK(world.endpoints->calls("d/10.0.0.1:80") == 1);
  }
}

TEST_CASE("cluster_impl: the same endpoints again make no other picker that counts",
          "[lb][cluster_impl]") {
  World world;
  world.endpoints = std::make_shared<CountedEndpoints>(/*most=*/9);
  PolicyHarness policy = world.policy();
  const EndpointsPtr endpoints = endpoints_at({"10.0.0.1:80"});
  policy.update(config_of(), nullptr, endpoints);
  ready(policy);
  CHECK(policy.update(config_of(), nullptr, endpoints) == Texts{"update child"});
}

TEST_CASE("cluster_impl: 1024 calls unless it is told otherwise",
          "[lb][cluster_impl][A32][A37-18]") {
  CHECK(ClusterImplConfig{}.max_concurrent_requests == 1024);
  CHECK(Cluster{}.max_concurrent_requests == 1024);
}

TEST_CASE("cluster_impl: a call that waits, fails or is dropped holds no place",
          "[lb][cluster_impl][A32]") {
  const World world;
  PolicyHarness policy = world.policy();
  policy.update(config_of(1), nullptr, dropping({{"half", kAll / 2}}));
  for (const auto state : {kConnecting, kFailure}) {
    policy.child("child", state);
    for (std::uint64_t seed = 0; seed < 100; ++seed)
      const Call call(policy, seed);
  }
  ready(policy);
  // A pick alone does not count towards the limit; its call does once it has passed the gate.
  for (int i = 0; i < 10; ++i)
    policy.published()->picker->pick({});
  CHECK(world.limits->of(ClusterName("c"), "service")->in_flight() == 0);
}

TEST_CASE("cluster_impl: a new limit holds at once for the calls that run already",
          "[lb][cluster_impl][A32][A37-29]") {
  const World world;
  PolicyHarness policy = world.policy();
  policy.update(config_of(3));
  ready(policy);
  std::vector<Call> calls;
  calls.reserve(4);
  for (int i = 0; i < 3; ++i)
    calls.emplace_back(policy);
  CHECK(policy.update(config_of(4)) == Texts{"breaker c 4", "update child", "publish READY"});
  calls.emplace_back(policy);
  CHECK(calls.back().runs());
  policy.update(config_of(2));
  CHECK_FALSE(Call(policy).runs());
  calls.erase(calls.begin(), calls.begin() + 2);
  CHECK_FALSE(Call(policy).runs());
  calls.pop_back();
  CHECK(Call(policy).runs());

  SECTION("and other drops leave the breaker as it is") {
    CHECK(policy.update(config_of(2), nullptr, dropping({{"lb", 1}})) ==
          Texts{"update child", "publish READY"});
  }
}

TEST_CASE("cluster_impl: all who call a cluster share one count",
          "[lb][cluster_impl][A32][A37-11][A37-29]") {
  const World world;
  PolicyHarness one = world.policy();
  PolicyHarness two = world.policy();
  PolicyHarness elsewhere = world.policy();
  one.update(config_of(2));
  two.update(config_of(2));
  elsewhere.update(config_of(2, "other service"));
  ready(one);
  ready(two);
  ready(elsewhere);
  const Call first(one);
  std::optional<Call> second(std::in_place, two);
  REQUIRE(first.runs());
  REQUIRE(second->runs());
  CHECK_FALSE(Call(one).runs());
  CHECK_FALSE(Call(two).runs());
  CHECK(Call(elsewhere).runs());
  second.reset();
  CHECK(Call(one).runs());
}

TEST_CASE("cluster_impl: another EDS service of the cluster has a count of its own",
          "[lb][cluster_impl][A32][A37-29]") {
  const World world;
  PolicyHarness policy = world.policy();
  policy.update(config_of(1));
  ready(policy);
  const Call first(policy);
  REQUIRE(first.runs());
  REQUIRE_FALSE(Call(policy).runs());
  policy.update(config_of(1, "other service"));
  CHECK(Call(policy).runs());
}

TEST_CASE("cluster_impl: a pick below an aggregate names the leaf that counts it",
          "[lb][cluster_impl][A75-54][A89]") {
  World world;
  PolicyHarness policy = world.policy();
  const auto below = [](const std::string& aggregate, const std::string& leaf) {
    auto config = std::get<ClusterImplConfig>(*config_of(1024, "service", leaf));
    config.aggregate = ClusterName(aggregate);
    return make_lb_config(std::move(config));
  };
  const auto leaf_of_a_pick = [&]() -> const LeafCalls* {
    return policy.published()->picker->pick({}).leaf;
  };
  policy.update(below("", "a"), nullptr, dropping({}));
  ready(policy);
  CHECK(leaf_of_a_pick() == nullptr);

  policy.update(below("both", "a"), nullptr, dropping({}));
  const LeafCalls* const first = leaf_of_a_pick();
  REQUIRE(first != nullptr);
  CHECK(first->leaf() == ClusterName("a"));
  CHECK(first->stats() == world.calls->of_leaf(ClusterName("both"), ClusterName("a")).get());

  policy.update(below("both", "a"), nullptr, dropping({{"all", kAll}}));
  CHECK(policy.published()->picker->pick({}).outcome.index() == 3);  // The outcome is a Drop.
  CHECK(leaf_of_a_pick() == first);

  policy.update(below("all", "a"), nullptr, dropping({}));
  REQUIRE(leaf_of_a_pick() != nullptr);
  CHECK(leaf_of_a_pick()->stats() ==
        world.calls->of_leaf(ClusterName("all"), ClusterName("a")).get());
}
