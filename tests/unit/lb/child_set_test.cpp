// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/child_set.hpp"

#include <catch2/catch.hpp>

#include "lb/pick/pickers.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/printed.hpp"

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

const ChildName kA{"a"};
const ChildName kB{"b"};
using Texts = std::vector<std::string>;

LbConfigPtr round_robin() {
  return make_lb_config(RoundRobinConfig{});
}

LbConfigPtr pick_first() {
  return make_lb_config(PickFirstConfig{});
}

ChildStateChanged reports(const ChildName& child, ConnectivityState state) {
  return {child, state, {}, make_fail_picker(absl::UnavailableError("told apart by pointer"))};
}

EndpointsPtr one_priority(std::vector<LocalityPtr> localities) {
  return std::make_shared<const Endpoints>(Endpoints{{Priority{std::move(localities)}}, {}});
}

/// Gives configurations and events to a ChildSet as a composite policy does.
struct Composite {
  ChildSet children;
  LbEffects effects;

  void apply(Generation generation, std::initializer_list<ChildName> names, LbConfigPtr config) {
    ConfigUpdated update;
    update.generation = generation;
    children.begin(update);
    for (const ChildName& name : names)
      children.update(name, config, nullptr, effects);
    children.report_applied(effects);
  }

  template <typename Event>
  void hear(const Event& event) {
    if constexpr (std::is_same_v<Event, ChildStateChanged>) {
      children.hear(event, effects);
    } else {
      children.hear(event);
    }
    children.report_applied(effects);
  }

  Texts texts() const {
    Texts texts;
    for (const LbEffect& effect : effects)
      texts.push_back(to_text(effect));
    return texts;
  }

  std::vector<Generation> reported() const {
    std::vector<Generation> generations;
    for (const LbEffect& effect : effects) {
      if (const auto* report = std::get_if<ReportApplied>(&effect)) {
        generations.push_back(report->generation);
      }
    }
    return generations;
  }
};

using Generations = std::vector<Generation>;

}  // namespace

TEST_CASE("child_set: a generation is applied when every living child has answered",
          "[lb][child_set]") {
  Composite composite;
  composite.apply(1, {kA, kB}, round_robin());
  CHECK(composite.reported() == Generations{});

  SECTION("cumulatively, by the slowest") {
    composite.hear(ChildApplied{kA, 1});
    CHECK(composite.reported() == Generations{});
    composite.hear(ChildApplied{kB, 1});
    CHECK(composite.reported() == Generations{1});
    composite.apply(2, {kA, kB}, round_robin());
    composite.apply(3, {kA, kB}, round_robin());
    composite.hear(ChildApplied{kA, 3});
    composite.hear(ChildApplied{kB, 2});
    composite.hear(ChildApplied{kB, 3});
    CHECK(composite.reported() == Generations{1, 2, 3});
  }
  SECTION("a dead child counts as having answered") {
    composite.hear(ChildApplied{kA, 1});
    composite.hear(ChildDied{kB});
    CHECK(composite.reported() == Generations{1});
    composite.apply(2, {kB}, round_robin());
    CHECK(composite.reported() == Generations{1, 2});
  }
  SECTION("a stopped child counts as having answered") {
    composite.hear(ChildApplied{kA, 1});
    composite.children.stop(kB, composite.effects);
    composite.children.report_applied(composite.effects);
    CHECK(composite.reported() == Generations{1});
  }
  SECTION("a child that was sent nothing new holds nobody up") {
    composite.hear(ChildApplied{kA, 1});
    composite.hear(ChildApplied{kB, 1});
    composite.apply(2, {kA}, round_robin());
    composite.hear(ChildApplied{kA, 2});
    CHECK(composite.reported() == Generations{1, 2});
  }
  SECTION("it never falls when a child is started later") {
    composite.hear(ChildApplied{kA, 1});
    composite.hear(ChildApplied{kB, 1});
    composite.children.update(ChildName{"late"}, round_robin(), nullptr, composite.effects);
    composite.children.report_applied(composite.effects);
    CHECK(composite.children.applied() == 1);
    composite.hear(ChildApplied{ChildName{"late"}, 1});
    CHECK(composite.reported() == Generations{1});
  }
}

TEST_CASE("child_set: a child whose policy type changed is switched gracefully",
          "[lb][child_set][A37-22]") {
  const ChildName next{"a~2"};
  Composite composite;
  composite.apply(1, {kA}, round_robin());
  const auto old = reports(kA, kReady);
  const auto serving = [&] { return composite.children.find(kA)->picker; };

  SECTION("the same type is only updated") {
    composite.effects.clear();
    composite.apply(2, {kA}, round_robin());
    CHECK(composite.texts() == Texts{"update a"});
  }
  SECTION("one that is not READY is stopped at once") {
    composite.hear(reports(kA, kFailure));
    composite.effects.clear();
    composite.apply(2, {kA}, pick_first());
    CHECK(composite.texts() == Texts{"stop a", "start a~2"});
    CHECK(composite.children.find(kA)->state == kFailure);
    const auto first = reports(next, kConnecting);
    composite.hear(first);
    CHECK(serving() == first.picker);
    CHECK(composite.children.aggregate() == kConnecting);
  }
  SECTION("one that died is stopped at once, too, and the new one owes an answer") {
    composite.hear(ChildDied{kA});
    CHECK(composite.children.applied() == 1);
    composite.apply(2, {kA}, pick_first());
    CHECK(composite.children.applied() == 1);
    composite.hear(ChildApplied{next, 2});
    CHECK(composite.children.applied() == 2);
  }
  SECTION("one that is READY") {
    composite.hear(old);
    composite.hear(ChildApplied{kA, 1});
    composite.effects.clear();
    composite.apply(2, {kA}, pick_first());
    CHECK(composite.texts() == Texts{"start a~2"});
    composite.hear(reports(next, kConnecting));
    CHECK(serving() == old.picker);
    CHECK(composite.children.find(kA)->state == kReady);
    CHECK(composite.children.find(kA)->replacing);

    SECTION("serves, and tells of itself, meanwhile") {
      const auto newer = reports(kA, kReady);
      composite.hear(newer);
      CHECK(serving() == newer.picker);
    }
    SECTION("owes nothing: the new one answers") {
      composite.hear(ChildApplied{kA, 2});
      CHECK(composite.children.applied() == 1);
      composite.hear(ChildApplied{next, 2});
      CHECK(composite.children.applied() == 2);
    }
    SECTION("is stopped when the new one is past CONNECTING") {
      const auto state = GENERATE(kReady, kFailure, kIdle);
      composite.effects.clear();
      const auto taken = reports(next, state);
      composite.hear(taken);
      CHECK(composite.texts() == Texts{"stop a"});
      CHECK(serving() == taken.picker);
      CHECK(composite.children.find(kA)->state == state);
      CHECK_FALSE(composite.children.find(kA)->replacing);
      composite.hear(old);  // A late report of the stopped policy.
      CHECK(serving() == taken.picker);
    }
    SECTION("is stopped when it is READY no more") {
      composite.effects.clear();
      composite.hear(reports(kA, kFailure));
      CHECK(composite.texts() == Texts{"stop a"});
      CHECK(composite.children.find(kA)->state == kConnecting);
      CHECK(composite.children.aggregate() == kConnecting);
    }
    SECTION("is not followed by a replacement that was stopped") {
      composite.apply(3, {kA}, round_robin());
      composite.hear(reports(kA, kFailure));  // Policy a~3 has not reported yet.
      CHECK(serving() == make_queue_picker());
      CHECK(composite.children.find(kA)->state == kConnecting);
    }
    SECTION("stays when the type changes once more") {
      composite.effects.clear();
      composite.apply(3, {kA}, round_robin());
      CHECK(composite.texts() == Texts{"stop a~2", "start a~3"});
      CHECK(serving() == old.picker);
      composite.hear(reports(next, kReady));  // A late report of the stopped replacement.
      CHECK(serving() == old.picker);
      composite.hear(reports(ChildName("a~3"), kReady));
      CHECK(serving() != old.picker);
    }
    SECTION("is stopped with the new one when the child is") {
      composite.effects.clear();
      composite.children.stop(kA, composite.effects);
      CHECK(composite.texts() == Texts{"stop a", "stop a~2"});
    }
    SECTION("is asked to leave IDLE beside the new one") {
      composite.effects.clear();
      composite.children.exit_idle(kA, composite.effects);
      CHECK(composite.texts() == Texts{"exit-idle a", "exit-idle a~2"});
    }
  }
}

TEST_CASE("child_set: events of unknown children are dropped", "[lb][child_set]") {
  Composite composite;
  composite.apply(1, {kA}, round_robin());
  CHECK(composite.children.hear(reports(kB, kReady), composite.effects) == nullptr);
  CHECK(composite.children.hear(ChildApplied{kB, 1}) == nullptr);
  CHECK(composite.children.hear(ChildDied{kB}) == nullptr);
  composite.children.stop(kB, composite.effects);
  CHECK(composite.children.size() == 1);
}

TEST_CASE("child_set: nobody waits for a child that is to be stopped", "[lb][child_set][applied]") {
  Composite composite;
  composite.apply(1, {kA, kB}, round_robin());
  composite.hear(ChildApplied{kA, 1});
  CHECK(composite.children.reached() == 0);
  composite.children.excuse(kB);
  CHECK(composite.children.reached() == 1);
  SECTION("unless it is told something after all") {
    composite.apply(2, {kA, kB}, round_robin());
    composite.hear(ChildApplied{kA, 2});
    CHECK(composite.children.reached() == 1);
    composite.hear(ChildApplied{kB, 2});
    CHECK(composite.children.reached() == 2);
  }
}

TEST_CASE("child_set: a child that would learn nothing hears nothing", "[lb][child_set]") {
  const auto locality = std::make_shared<const Locality>();
  Composite composite;
  composite.apply(1, {}, nullptr);
  composite.children.update_if_changed(
      kA, round_robin(), one_priority({locality}), composite.effects);
  composite.effects.clear();

  composite.children.update_if_changed(
      kA, round_robin(), one_priority({locality}), composite.effects);
  CHECK(composite.effects.empty());
  composite.children.update_if_changed(
      kA, round_robin(), one_priority({std::make_shared<const Locality>()}), composite.effects);
  CHECK(composite.effects.size() == 1);
}

TEST_CASE("child_set: whatever of its endpoints changed, a child hears of it",
          "[lb][child_set][ENV-7][ENV-9]") {
  struct Row {
    const char* what;
    void (*change)(Endpoints& endpoints);
  };

  const auto row = GENERATE(values<Row>({
      {"a drop", [](Endpoints& endpoints) { endpoints.drops = {{"all", 1}}; }},
      {"how far a priority may shrink",
       [](Endpoints& endpoints) { endpoints.overprovisioning_percent = 100; }},
      {"what health counts",
       [](Endpoints& endpoints) { endpoints.weighted_priority_health = true; }},
      {"the localities", [](Endpoints& endpoints) { endpoints.priorities.pop_back(); }},
      {"who is degraded",
       [](Endpoints& endpoints) {
         endpoints.priorities[0].degraded.push_back(std::make_shared<const Locality>());
       }},
      {"who is unhealthy",
       [](Endpoints& endpoints) {
         endpoints.priorities[0].unhealthy.push_back(std::make_shared<const Locality>());
       }},
  }));
  INFO(row.what);
  Endpoints endpoints{{Priority{{std::make_shared<const Locality>()}}}, {}};
  const auto before = std::make_shared<const Endpoints>(endpoints);
  CHECK(shares_localities(before, std::make_shared<const Endpoints>(endpoints)));
  row.change(endpoints);
  CHECK_FALSE(shares_localities(before, std::make_shared<const Endpoints>(endpoints)));
}

TEST_CASE("child_set: sums states up, and failure lasts until READY", "[lb][child_set]") {
  Composite composite;
  composite.apply(1, {kA, kB}, round_robin());
  CHECK(composite.children.aggregate() == kConnecting);
  composite.hear(reports(kA, kIdle));
  composite.hear(reports(kB, kFailure));
  CHECK(composite.children.aggregate() == kIdle);
  composite.hear(reports(kA, kFailure));
  CHECK(composite.children.aggregate() == kFailure);
  composite.hear(reports(kA, kConnecting));
  CHECK(composite.children.aggregate() == kFailure);
  composite.hear(reports(kA, kReady));
  CHECK(composite.children.aggregate() == kReady);
}

TEST_CASE("child_set: a child's re-resolution request goes on upwards", "[lb][child_set][A37-33]") {
  Composite composite;
  composite.apply(1, {kA, kB}, round_robin());
  const auto asks = [&](const ChildName& child) {
    composite.effects.clear();
    composite.children.hear_other(ChildAskedReresolution{child}, composite.effects);
    return composite.texts();
  };
  CHECK(asks(kA) == Texts{"re-resolve"});
  CHECK(asks(ChildName("gone")).empty());

  // While a replacement starts, the old policy and the new one run for the same child.
  composite.hear(reports(kA, kReady));
  composite.apply(2, {kA}, pick_first());
  CHECK(asks(kA) == Texts{"re-resolve"});
  CHECK(asks(ChildName("a~2")) == Texts{"re-resolve"});
  composite.hear(reports(ChildName("a~2"), kReady));
  CHECK(asks(kA).empty());

  composite.children.stop(kB, composite.effects);
  CHECK(asks(kB).empty());
}

TEST_CASE("child_set: an event without a rule of the composite's own is noted", "[lb][child_set]") {
  Composite composite;
  composite.apply(1, {kA, kB}, round_robin());
  composite.children.hear_other(ChildApplied{kA, 1}, composite.effects);
  CHECK(composite.children.reached() == 0);
  composite.children.hear_other(ChildDied{kB}, composite.effects);
  CHECK(composite.children.reached() == 1);
}
