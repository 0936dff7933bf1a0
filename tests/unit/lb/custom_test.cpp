// SPDX-License-Identifier: Apache-2.0
//
// A custom policy: the effects and answers that are passed on, and the promise that each bad one
// breaks.
#include "lb/leaf/custom.hpp"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "lb/leaf/custom_picker.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/policy_registry.hpp"
#include "messages/invariant.hpp"
#include "tests/unit/lb/leaf_harness.hpp"

namespace signalbox::lb {
namespace {

using Catch::Matchers::Contains;
using Script = std::function<LbEffects(const LbEvent& event)>;

// A custom policy that answers each event as the test's script says.
class Scripted final : public Policy {
 public:
  explicit Scripted(Script script) : script_(std::move(script)) {}

  LbEffects step(const LbEvent& event, Instant /*now*/) override { return script_(event); }

 private:
  Script script_;
};

const char kName[] = "com.example.Scripted";
const auto kFailures = std::make_shared<const StripedCounters<1>>();

std::shared_ptr<const CustomPolicies> registering(Script script) {
  CustomPolicies policies;
  policies[kName] = CustomPolicy{[script = std::move(script)](const CustomConfig&, PolicyContext) {
                                   return std::make_unique<Scripted>(script);
                                 },
                                 kFailures};
  return std::make_shared<const CustomPolicies>(std::move(policies));
}

PolicyContext context_with(std::shared_ptr<const CustomPolicies> policies) {
  PolicyContext context{PolicyPath{"p"}, 1, nullptr};
  context.options.custom = std::move(policies);
  return context;
}

std::unique_ptr<Policy> make(Script script) {
  return make_policy(CustomConfig{kName, "{}"}, context_with(registering(std::move(script))));
}

Publish publish(PickerPtr picker, Generation generation = 0) {
  return Publish{ConnectivityState::kReady, absl::OkStatus(), std::move(picker), generation};
}

ConfigUpdated update(Generation generation) {
  ConfigUpdated update;
  update.generation = generation;
  return update;
}

ConfigUpdated child_update(LbConfigPtr config, Generation generation = 1) {
  return ConfigUpdated{generation, std::move(config), nullptr, nullptr};
}

// The error of the broken invariant if a policy returns `first` when it is configured, and
// `second` afterwards; "": no invariant is broken.
std::string broken(LbEffects first, LbEffects second = {}) {
  const auto policy = make([&](const LbEvent& event) {
    return std::holds_alternative<ConfigUpdated>(event) ? first : second;
  });
  try {
    policy->step(update(1), Instant{});
    policy->step(IdleExitRequested{}, Instant{});
  } catch (const BrokenInvariant& error) {
    return error.what();
  }
  return "";
}

const LbEffects kGood = {publish(make_queue_picker(), 1), ReportApplied{1}};

LbEffects good_and(LbEffect more) {
  LbEffects effects = kGood;
  effects.push_back(std::move(more));
  return effects;
}

class ThrowingPicker final : public Picker {
 public:
  PickResult pick(const PickArgs&) const override { throw std::runtime_error("no dice"); }
};

// Throws an object that is no std::exception.
class OddlyThrowingPicker final : public Picker {
 public:
  PickResult pick(const PickArgs&) const override { throw 7; }
};

class AnsweringPicker final : public Picker {
 public:
  explicit AnsweringPicker(PickResult answer) : answer_(std::move(answer)) {}

  PickResult pick(const PickArgs&) const override { return answer_; }

 private:
  PickResult answer_;
};

// The picker that `custom` publishes when the custom policy publishes `picker`.
PickerPtr published(PickerPtr picker) {
  const auto policy = make([&](const LbEvent&) { return LbEffects{publish(picker, 1)}; });
  const LbEffects effects = policy->step(update(1), Instant{});
  return std::get<Publish>(effects.at(0)).picker;
}

// The result of a pick when the custom policy publishes `picker`.
PickResult picked_by(PickerPtr picker) {
  return published(std::move(picker))->pick({});
}

template <typename Outcome>
PickResult answer(Outcome outcome) {
  PickResult result;
  result.outcome = std::move(outcome);
  return result;
}

}  // namespace

TEST_CASE("custom: a name that nobody registered makes no policy", "[lb][custom][A52]") {
  CHECK(make_policy(CustomConfig{kName, "{}"}, context_with(nullptr)) == nullptr);
  const auto others = registering([](const LbEvent&) { return LbEffects{}; });
  CHECK(make_policy(CustomConfig{"com.example.Other", "{}"}, context_with(others)) == nullptr);
  CHECK(make_policy(CustomConfig{kName, "{}"}, context_with(others)) != nullptr);
}

TEST_CASE("custom: a child's re-resolution request goes on upwards, and the policy need not know",
          "[lb][custom][A37-33]") {
  const auto policy = make([](const LbEvent& event) {
    REQUIRE(std::holds_alternative<ConfigUpdated>(event));
    return good_and(StartChild{ChildName("c"), child_update(make_lb_config(RoundRobinConfig{}))});
  });
  policy->step(update(1), Instant{});
  const LbEffects effects = policy->step(ChildAskedReresolution{ChildName("c")}, Instant{});
  REQUIRE(effects.size() == 1);
  CHECK(std::holds_alternative<RequestReresolution>(effects.front()));
  CHECK(policy->step(ChildAskedReresolution{ChildName("gone")}, Instant{}).empty());
}

TEST_CASE("custom: make() must make something", "[lb][custom]") {
  CustomPolicies policies;
  policies[kName].make = [](const CustomConfig&, PolicyContext) { return nullptr; };
  const auto context = context_with(std::make_shared<const CustomPolicies>(std::move(policies)));
  CHECK_THROWS_WITH(make_policy(CustomConfig{kName, "{}"}, context),
                    "custom policy com.example.Scripted: make() made nothing");
}

TEST_CASE("custom: a policy that keeps its promises is passed on as it is", "[lb][custom]") {
  const auto policy = make([](const LbEvent& event) -> LbEffects {
    if (std::holds_alternative<ConfigUpdated>(event)) {
      return {AcquireSubchannel{Address{"a"}},
              Connect{Address{"a"}},
              StartChild{ChildName{"c"}, child_update(make_lb_config(RoundRobinConfig{}))},
              publish(make_queue_picker(), 1),
              ReportApplied{1}};
    }
    return {UpdateChild{ChildName{"c"}, child_update(make_lb_config(RoundRobinConfig{}))},
            ExitIdleChild{ChildName{"c"}},
            StopChild{ChildName{"c"}},
            ReleaseSubchannel{Address{"a"}},
            AcquireSubchannel{Address{"a"}},
            StartTimer{TimerId{"t"}, Duration{5}},
            StartTimer{TimerId{"t"}, Duration::zero()},
            CancelTimer{TimerId{"t"}},
            RebuildSoon{},
            RequestReresolution{},
            // A stopped child may be started again with another policy.
            StartChild{ChildName{"c"}, child_update(make_lb_config(PickFirstConfig{}))}};
  });
  CHECK(policy->step(update(1), Instant{}).size() == 5);
  CHECK(policy->step(IdleExitRequested{}, Instant{}).size() == 11);
}

TEST_CASE("custom: an order that breaks a promise is an exception that says which",
          "[lb][custom]") {
  struct Row {
    std::string what;
    LbEffects first;
    LbEffects second;
  };

  const auto round_robin = make_lb_config(RoundRobinConfig{});
  const auto pick_first = make_lb_config(PickFirstConfig{});
  const StartChild start{ChildName{"c"}, child_update(round_robin)};
  const Address a{"a"};
  Publish silent_failure = publish(make_queue_picker(), 1);
  silent_failure.state = ConnectivityState::kTransientFailure;
  const std::vector<Row> rows = {
      {"I1: it is configured, and has published no picker", {}, {}},
      {"I1: it reports before it has published a picker",
       {ReportApplied{1}, publish(make_queue_picker(), 1)},
       {}},
      {"I2: a state is published without a picker", {publish(nullptr, 1)}, {}},
      {"I2: TRANSIENT_FAILURE is published without saying why", {silent_failure}, {}},
      {"I3: no configuration has generation 2", {publish(make_queue_picker(), 2)}, {}},
      {"I3: no configuration has generation 2", kGood, {ReportApplied{2}}},
      {"I3: it was at a newer generation than 0", kGood, {ReportApplied{0}}},
      {"I3: it was at a newer generation than 0", kGood, {publish(make_queue_picker(), 0)}},
      {"I4: it acquires no address", kGood, {AcquireSubchannel{}}},
      {"I4: it holds already a", good_and(AcquireSubchannel{a}), {AcquireSubchannel{a}}},
      {"I4: it does not hold a", kGood, {ReleaseSubchannel{a}}},
      {"I4: it does not hold a", kGood, {Connect{a}}},
      {"I4: it does not hold a",
       good_and(AcquireSubchannel{a}),
       {ReleaseSubchannel{a}, Connect{a}}},
      {"I5: there is already a child c", good_and(start), {start}},
      {"I5: there is no child c", kGood, {UpdateChild{start.child, start.update}}},
      {"I5: there is no child c", kGood, {StopChild{start.child}}},
      {"I5: there is no child c", kGood, {ExitIdleChild{start.child}}},
      {"I5: a child has a name", kGood, {StartChild{ChildName{}, start.update}}},
      {"I5: without a configuration there is no child c",
       kGood,
       {StartChild{start.child, child_update(nullptr)}}},
      {"I5: a child keeps its policy: c",
       good_and(start),
       {UpdateChild{start.child, child_update(pick_first)}}},
      {"I5: no child of it can be a cds",
       kGood,
       {StartChild{start.child, child_update(make_lb_config(CdsConfig{}))}}},
      {"I3: no configuration has generation 2",
       kGood,
       {StartChild{start.child, child_update(round_robin, 2)}}},
      {"a delay is negative, of timer t", kGood, {StartTimer{TimerId{"t"}, Duration{-1}}}},
      {"I6: it is not its business to order ServeSubchannels", kGood, {ServeSubchannels{}}},
      {"I6: it is not its business to order SettleSubchannels", kGood, {SettleSubchannels{}}},
      {"I6: it is not its business to order CloseSubchannels", kGood, {CloseSubchannels{}}},
      {"I6: it is not its business to order SetEndpointHealth", kGood, {SetEndpointHealth{}}},
      {"I6: it is not its business to order TrackEndpoints", kGood, {TrackEndpoints{}}},
      {"I6: it is not its business to order Observe", kGood, {Observe{}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(broken(row.first, row.second) == "custom policy com.example.Scripted: " + row.what);
  }
}

TEST_CASE("custom: no child can be a policy that belongs above a cluster's own", "[lb][custom]") {
  const auto config = GENERATE(as<LbConfigPtr>{},
                               make_lb_config(ClusterManagerConfig{}),
                               make_lb_config(OutlierDetectionConfig{}),
                               make_lb_config(ClusterImplConfig{}),
                               make_lb_config(OverrideHostConfig{}),
                               make_lb_config(TieredConfig{}),
                               make_lb_config(LeafTiersConfig{}));
  CHECK(broken(kGood, {StartChild{ChildName{"c"}, child_update(config)}}) ==
        "custom policy com.example.Scripted: I5: no child of it can be a " +
            std::string(policy_name(*config)));
}

TEST_CASE("custom: a child's update needs a configuration of a known generation, too",
          "[lb][custom]") {
  const auto round_robin = make_lb_config(RoundRobinConfig{});
  const LbEffects first = good_and(StartChild{ChildName{"c"}, child_update(round_robin)});
  const auto broken_by = [&](ConfigUpdated given) {
    return broken(first, {UpdateChild{ChildName{"c"}, std::move(given)}});
  };
  CHECK(broken_by(child_update(round_robin)).empty());
  CHECK(broken_by(child_update(nullptr)) ==
        "custom policy com.example.Scripted: I5: without a configuration there is no child c");
  CHECK(broken_by(child_update(round_robin, 2)) ==
        "custom policy com.example.Scripted: I3: no configuration has generation 2");
}

TEST_CASE("custom: sessions and streams of load reports are not its business", "[lb][custom]") {
  CHECK_THAT(broken(kGood, {KeepSessions{}}), Catch::EndsWith("to order KeepSessions"));
  CHECK_THAT(broken(kGood, {WatchLoad{}}), Catch::EndsWith("to order WatchLoad"));
}

TEST_CASE("custom: what a policy throws goes through", "[lb][custom]") {
  const auto policy = make([](const LbEvent&) -> LbEffects { throw std::out_of_range("oops"); });
  CHECK_THROWS_AS(policy->step(update(1), Instant{}), std::out_of_range);
}

TEST_CASE("custom: a picker that is published again stays the same", "[lb][custom]") {
  const PickerPtr picker = make_queue_picker();
  const auto policy = make([&](const LbEvent&) { return LbEffects{publish(picker, 1)}; });
  const LbEffects first = policy->step(update(1), Instant{});
  const LbEffects second = policy->step(IdleExitRequested{}, Instant{});
  CHECK(std::get<Publish>(first[0]).picker == std::get<Publish>(second[0]).picker);
}

TEST_CASE("custom: a picker's answer is passed on", "[lb][custom][pick]") {
  const auto before = kFailures->sum(0);
  CHECK(std::holds_alternative<Queue>(picked_by(make_queue_picker()).outcome));
  const auto drop = picked_by(make_drop_picker(absl::UnavailableError("full")));
  CHECK(std::get<Drop>(drop.outcome).status.message() == "full");
  const auto connection = std::make_shared<const Connection>(Address{"a"});
  CHECK(std::get<Complete>(picked_by(make_connection_picker(connection)).outcome).connection ==
        connection.get());
  // A custom picker may leave Complete::uses unset. Then signalbox sets it.
  Complete bare;
  bare.connection = connection.get();
  const PickResult counted = picked_by(std::make_shared<const AnsweringPicker>(answer(bare)));
  {
    const Use use(*connection, std::get<Complete>(counted.outcome).uses);
    CHECK(connection->uses() == 1);
  }
  // Signalbox also sets the zone, if the user's picker names the endpoint.
  CHECK(std::get<Complete>(counted.outcome).zone == CallZone::kUnknown);
  const auto locality = std::make_shared<const Locality>(
      Locality{{"north", "a", ""}, 1, {{.addresses = {Address("a")}}}});
  const ChosenEndpoint chosen{locality, &locality->endpoints.front(), nullptr};
  bare.endpoint = &chosen;
  const PickerPtr own = std::make_shared<const AnsweringPicker>(answer(bare));
  const PickerPtr zoned = make_custom_picker(kName, own, {"north", "a", "rack 4"}, kFailures);
  CHECK(std::get<Complete>(zoned->pick({}).outcome).zone == CallZone::kOwn);
  CHECK(kFailures->sum(0) == before);
}

TEST_CASE("custom: a picker that throws, or answers what none may, fails that call",
          "[lb][custom][pick]") {
  struct Row {
    std::string why;
    PickerPtr picker;
  };

  const auto answering = [](auto outcome) -> PickerPtr {
    return std::make_shared<const AnsweringPicker>(answer(std::move(outcome)));
  };
  const std::vector<Row> rows = {
      {"threw: no dice", std::make_shared<const ThrowingPicker>()},
      {"threw", std::make_shared<const OddlyThrowingPicker>()},
      {"completed without a connection", answering(Complete{})},
      {"failed with OK", answering(Fail{})},
      {"dropped with OK", answering(Drop{})},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const auto before = kFailures->sum(0);
    const PickResult result = picked_by(row.picker);
    REQUIRE(std::holds_alternative<Fail>(result.outcome));
    CHECK(std::get<Fail>(result.outcome).status ==
          absl::InternalError("the picker of custom policy com.example.Scripted " + row.why));
    CHECK(kFailures->sum(0) == before + 1);
  }
  const PickerPtr uncounted =
      make_custom_picker(kName, std::make_shared<const ThrowingPicker>(), {}, nullptr);
  CHECK(std::holds_alternative<Fail>(uncounted->pick({}).outcome));
}

TEST_CASE("custom: what is only explained tells of a failure, and counts none",
          "[lb][custom][explain]") {
  struct Told final : PickTrace {
    std::vector<PickStep> steps;

    void tell(PickStep step) override { steps.push_back(std::move(step)); }
  } told;

  const auto before = kFailures->sum(0);
  const PickerPtr picker = published(std::make_shared<const ThrowingPicker>());
  const PickResult result = picker->explain({}, told);
  CHECK(std::get<Fail>(result.outcome).status ==
        absl::InternalError("the picker of custom policy com.example.Scripted threw: no dice"));
  CHECK(told.steps ==
        std::vector<PickStep>{
            {kName, "no endpoint", "the picker of a policy of the program's own says so", "CDS"}});
  CHECK(kFailures->sum(0) == before);
  picker->pick({});
  CHECK(kFailures->sum(0) == before + 1);
  told.steps.clear();
  const auto connection = std::make_shared<const Connection>(Address{"a"});
  published(make_connection_picker(connection))->explain({}, told);
  CHECK(told.steps.back() ==
        PickStep{kName, "a", "the picker of a policy of the program's own says so", "CDS"});
}

}  // namespace signalbox::lb
