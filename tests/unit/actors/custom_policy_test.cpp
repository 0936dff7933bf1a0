// SPDX-License-Identifier: Apache-2.0
//
// A custom policy throws or breaks a rule, with real actors in virtual time. The tests check the
// picker that serves until the restart, the configuration of the restart, and the report of the
// failure.
//
//   ear ◀─ policy (outlier_detection) ◀─ policy (custom): the test's script
//
// `ear` stands in for the parent of outlier_detection, and records the publications.

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <caf/scheduler/test_coordinator.hpp>
#include <catch2/catch.hpp>

#include "actors/policy_birth.hpp"
#include "actors/protocol/policy.hpp"
#include "lb/leaf/custom.hpp"
#include "lb/pick/pickers.hpp"
#include "metrics/exporter.hpp"
#include "tests/support/printed.hpp"

namespace signalbox::actors {
namespace {

using Catch::Matchers::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;

const char kName[] = "com.example.Scripted";

/// The reaction of the policy to an event. `life` counts the starts of the policy from 1; `events`
/// counts the events since the last start.
using Script = std::function<LbEffects(int life, int events, const LbEvent& event)>;

class Scripted final : public lb::Policy {
 public:
  Scripted(int life, Script script) : life_(life), script_(std::move(script)) {}

  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    return script_(life_, ++events_, event);
  }

 private:
  const int life_;
  int events_ = 0;
  Script script_;
};

// The effects of a policy that is READY at once. Its picker drops each call, with a text that has
// the given name and the configuration's generation. No effects if `event` is no configuration.
LbEffects serve(const std::string& who, const LbEvent& event) {
  const auto* update = std::get_if<ConfigUpdated>(&event);
  if (update == nullptr) return {};
  const std::string name = absl::StrCat(who, ", configuration ", update->generation);
  return {Publish{ConnectivityState::kReady,
                  absl::OkStatus(),
                  lb::make_drop_picker(absl::UnavailableError(name)),
                  update->generation},
          ReportApplied{update->generation}};
}

struct Heard {
  std::vector<ChildStateChanged> published;
  Generation applied = 0;
};

// Stands in for the parent of the policies: records their publications.
protocol::BehaviorOf<protocol::PolicyParent> hear(protocol::PolicyParent::pointer,
                                                  std::shared_ptr<Heard> heard) {
  return {
      [heard](const ChildStateChanged& event) { heard->published.push_back(event); },
      [heard](const ChildApplied& event) { heard->applied = event.generation; },
      [](const ChildAskedReresolution&) {},
  };
}

caf::actor_system_config& testing(caf::actor_system_config& config) {
  config.set("scheduler.policy", caf::atom("testing"));
  return config;
}

class World {
 public:
  explicit World(Script script)
      : system_(testing(config_)),
        coordinator_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())) {
    system_.await_actors_before_shutdown(false);
    Environment made;
    made.instruments = instruments;
    made.log = [this](const LogLine& line) { log.push_back(line.text); };
    lb::CustomPolicies policies;
    policies[kName].make = [this, script = std::move(script)](const CustomConfig&,
                                                              lb::PolicyContext) {
      if (unmakeable) throw std::runtime_error("cannot be made");
      return std::make_unique<Scripted>(++lives, script);
    };
    made.policy.custom = std::make_shared<const lb::CustomPolicies>(std::move(policies));

    ear_ = system_.spawn(hear, heard);
    PolicyBirth birth;
    birth.config = config();
    birth.name = ChildName("parent");
    birth.path = PolicyPath("orders/parent");
    birth.parent = ear_;
    parent_ = spawn_policy(
        system_, std::make_shared<const Environment>(std::move(made)), std::move(birth));
  }

  ~World() {
    protocol::stop(parent_);
    caf::anon_send_exit(ear_, caf::exit_reason::kill);
    coordinator_.run();
    coordinator_.clock().cancel_all();
  }

  void configure(Generation generation) {
    tell(ConfigUpdated{generation, config(), nullptr, nullptr});
  }

  /// Sends an event that reaches the custom policy.
  void wake() { tell(IdleExitRequested{}); }

  void pass(Duration time) {
    const Duration step = milliseconds(10);
    for (Duration passed{}; passed < time; passed += step) {
      coordinator_.advance_time(step);
      coordinator_.run();
    }
  }

  /// The name that the current picker answers with.
  std::string serving() const {
    const PickResult result = heard->published.back().picker->pick({});
    if (const auto* fail = std::get_if<Fail>(&result.outcome))
      return absl::StrCat("fail: ", fail->status.message());
    const auto* drop = std::get_if<Drop>(&result.outcome);
    return drop == nullptr ? "nobody" : std::string(drop->status.message());
  }

  std::string metrics() const { return metrics::Exporter(instruments).text(); }

  std::shared_ptr<metrics::Instruments> instruments = std::make_shared<metrics::Instruments>();
  std::shared_ptr<Heard> heard = std::make_shared<Heard>();
  std::vector<std::string> log;
  int lives = 0;
  bool unmakeable = false;

 private:
  static LbConfigPtr config() {
    return make_lb_config(OutlierDetectionConfig{make_lb_config(CustomConfig{kName, "{}"})});
  }

  template <typename Event>
  void tell(Event event) {
    protocol::post(parent_, std::move(event));
    coordinator_.run();
  }

  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& coordinator_;
  protocol::PolicyParent ear_;
  protocol::PolicyActor parent_;
};

LbEffects steady(int life, int /*events*/, const LbEvent& event) {
  return serve(absl::StrCat("life ", life), event);
}

}  // namespace

TEST_CASE(
    "custom policy: one that throws at its third event is restarted, and its last picker "
    "serves until then",
    "[actors][custom]") {
  World world([](int life, int events, const LbEvent& event) {
    if (life == 1 && events == 3) throw std::runtime_error("three is too much");
    return steady(life, events, event);
  });
  world.configure(1);
  REQUIRE(world.serving() == "life 1, configuration 1");
  CHECK(world.heard->applied == 1);
  world.wake();
  CHECK(world.log.empty());

  world.wake();
  CHECK(world.lives == 1);
  CHECK(world.serving() == "life 1, configuration 1");
  REQUIRE(world.log.size() == 1);
  CHECK(world.log[0] ==
        "policy com.example.Scripted (orders/parent/child) died: three is too much");
  CHECK_THAT(world.metrics(),
             Contains("signalbox_actor_deaths_total{actor=\"policy\",reason=\"exception\"} 1"));

  world.pass(milliseconds(90));
  CHECK(world.lives == 1);
  CHECK(world.serving() == "life 1, configuration 1");
  world.pass(milliseconds(20));
  CHECK(world.lives == 2);
  CHECK(world.serving() == "life 2, configuration 1");
  // The restarted policy takes new configurations.
  world.configure(2);
  CHECK(world.serving() == "life 2, configuration 2");
  CHECK(world.heard->applied == 2);
}

TEST_CASE("custom policy: one that breaks a promise is restarted, and nothing of that step is run",
          "[actors][custom]") {
  World world([](int life, int events, const LbEvent& event) -> LbEffects {
    if (life > 1 || events < 2) return steady(life, events, event);
    LbEffects effects = serve("nobody's", ConfigUpdated{1, nullptr, nullptr, nullptr});
    effects.push_back(ReleaseSubchannel{Address("127.0.0.1:80")});
    return effects;
  });
  world.configure(1);
  world.wake();
  CHECK(world.serving() == "life 1, configuration 1");
  REQUIRE(world.log.size() == 1);
  CHECK_THAT(world.log[0],
             Contains("custom policy com.example.Scripted: I4: it does not hold 127.0.0.1:80"));
  world.pass(milliseconds(110));
  CHECK(world.serving() == "life 2, configuration 1");
}

TEST_CASE("custom policy: a configuration that kills it is not given to it again",
          "[actors][custom]") {
  World world([](int life, int events, const LbEvent& event) -> LbEffects {
    const auto* update = std::get_if<ConfigUpdated>(&event);
    if (update != nullptr && update->generation == 2) throw std::runtime_error("poison");
    return steady(life, events, event);
  });
  world.configure(1);
  world.configure(2);
  CHECK(world.serving() == "life 1, configuration 1");
  // The dead custom policy does not keep its parent from reporting the configuration as applied.
  CHECK(world.heard->applied == 2);
  world.pass(seconds(60));
  CHECK(world.lives == 2);
  CHECK(world.log.size() == 1);
  CHECK(world.serving() == "life 2, configuration 1");
  world.configure(3);
  CHECK(world.lives == 2);
  CHECK(world.serving() == "life 2, configuration 3");
}

TEST_CASE("custom policy: one that dies of its first configuration fails its calls, and says why",
          "[actors][custom]") {
  World world([](int life, int events, const LbEvent& event) -> LbEffects {
    if (life == 1) throw 7;  // Not a std::exception.
    return steady(life, events, event);
  });
  world.configure(1);
  CHECK_THAT(world.serving(), Contains("fail: policy child died of its configuration"));
  CHECK(world.heard->published.back().state == ConnectivityState::kTransientFailure);
  REQUIRE(world.log.size() == 1);
  CHECK_THAT(world.log[0], Contains("something that is no std::exception"));
  world.pass(seconds(60));
  CHECK(world.lives == 1);
  world.configure(2);
  CHECK(world.serving() == "life 2, configuration 2");
}

TEST_CASE(
    "custom policy: one that breaks a promise at once is tried again with the next configuration",
    "[actors][custom]") {
  World world([](int, int, const LbEvent&) { return LbEffects{}; });
  world.configure(1);
  CHECK_THAT(world.serving(), Contains("fail: policy child died of its configuration"));
  REQUIRE(world.log.size() == 1);
  CHECK_THAT(world.log[0], Contains("I1: it is configured, and has published no picker"));
  world.configure(2);
  CHECK(world.lives == 1);
  world.pass(milliseconds(110));
  CHECK(world.lives == 2);
  CHECK(world.log.size() == 2);
}

TEST_CASE("custom policy: a hundred configurations to one that dies of each are few restarts",
          "[actors][custom]") {
  World world([](int, int, const LbEvent&) -> LbEffects { throw std::runtime_error("poison"); });
  for (Generation next = 1; next <= 100; ++next) {
    world.configure(next);
    CHECK(world.heard->applied == next);  // As above: the dead policy does not delay the report.
  }
  CHECK(world.lives == 1);
  world.pass(milliseconds(110));
  CHECK(world.lives == 2);
  // The restart used the last configuration, which killed the policy: no further restart follows.
  world.pass(seconds(60));
  CHECK(world.lives == 2);
}

TEST_CASE("custom policy: one that dies again and again has one restart under way",
          "[actors][custom]") {
  World world([](int life, int events, const LbEvent& event) -> LbEffects {
    if (events > 1) throw std::runtime_error("poison");
    return steady(life, events, event);
  });
  for (Generation next = 1; next <= 100; ++next)
    world.configure(next);
  CHECK(world.lives == 1);
  world.pass(milliseconds(110));
  CHECK(world.lives == 2);
  for (Generation next = 101; next <= 200; ++next)
    world.configure(next);
  world.pass(seconds(60));
  CHECK(world.lives == 3);
}

TEST_CASE("custom policy: one that cannot be made fails its calls, and is told of",
          "[actors][custom]") {
  World world(steady);
  world.unmakeable = true;
  world.configure(1);
  CHECK_THAT(world.serving(), Contains("fail: policy child died of its configuration"));
  REQUIRE(world.log.size() == 1);
  CHECK_THAT(world.log[0], Contains("died: cannot be made"));
  world.unmakeable = false;
  world.configure(2);
  world.pass(milliseconds(110));
  CHECK(world.serving() == "life 1, configuration 2");
}

}  // namespace signalbox::actors
