// SPDX-License-Identifier: Apache-2.0
//
// priority compared with the model of A56 (priority_model.hpp): both get the same events. After
// each event both have the same children, timers and picker.
#include "tests/unit/lb/priority_model.hpp"

#include <set>

#include <catch2/catch.hpp>

#include "lb/tree/priority.hpp"
#include "lb/tree/priority_rules.hpp"
#include "tests/support/policy_harness.hpp"
#include "tests/support/printed.hpp"
#include "tests/support/property.hpp"

namespace rc {

template <>
struct Arbitrary<signalbox::lb::PriorityChild> {
  static Gen<signalbox::lb::PriorityChild> arbitrary() {
    using signalbox::ConnectivityState;
    using signalbox::lb::PriorityChild;
    return gen::build<PriorityChild>(gen::set(&PriorityChild::started),
                                     gen::set(&PriorityChild::state,
                                              gen::element(ConnectivityState::kIdle,
                                                           ConnectivityState::kConnecting,
                                                           ConnectivityState::kReady,
                                                           ConnectivityState::kTransientFailure)),
                                     gen::set(&PriorityChild::failover_pending));
  }
};

}  // namespace rc

using namespace signalbox;
using namespace signalbox::lb;
using namespace signalbox::test;

namespace {

using Names = std::vector<std::string>;

/// The next event; numbers are taken modulo the number of choices.
struct Happening {
  enum Kind { kUpdate, kReport, kAnswer, kOldAnswer, kDeath, kTime, kLateTimer };

  Kind kind = kReport;
  std::vector<std::uint8_t> order;  ///< kUpdate: from eight names, in this order, each once.
  std::uint8_t child = 0;
  std::uint8_t state = 0;
  std::uint8_t time = 0;

  friend std::ostream& operator<<(std::ostream& out, const Happening& it) {
    out << "{" << int(it.kind) << " child " << int(it.child) << " state " << int(it.state)
        << " time " << int(it.time) << " order";
    for (const std::uint8_t name : it.order)
      out << " " << int(name);
    return out << "}";
  }
};

/// In a container of a small size, numbers of that size would all be 0.
rc::Gen<std::uint8_t> any_number() {
  return rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint8_t>());
}

/// Reports and answers come more often than configurations.
rc::Gen<Happening> happenings() {
  return rc::gen::build<Happening>(
      rc::gen::set(&Happening::kind,
                   rc::gen::weightedElement<Happening::Kind>({{2, Happening::kUpdate},
                                                              {8, Happening::kReport},
                                                              {6, Happening::kAnswer},
                                                              {1, Happening::kOldAnswer},
                                                              {1, Happening::kDeath},
                                                              {4, Happening::kTime},
                                                              {1, Happening::kLateTimer}})),
      rc::gen::set(&Happening::order,
                   rc::gen::resize(5, rc::gen::container<std::vector<std::uint8_t>>(any_number()))),
      rc::gen::set(&Happening::child, rc::gen::arbitrary<std::uint8_t>()),
      rc::gen::set(&Happening::state, rc::gen::arbitrary<std::uint8_t>()),
      rc::gen::set(&Happening::time, rc::gen::arbitrary<std::uint8_t>()));
}

PolicyOptions options_like(const PriorityModel::Options& model) {
  PolicyOptions options;
  options.keep_removed_priorities = model.keeps_removed;
  options.standby_priorities = model.standbys;
  return options;
}

/// Endpoints that equal no others, so that each child gets each configuration.
EndpointsPtr new_endpoints() {
  auto endpoints = std::make_shared<Endpoints>();
  endpoints->priorities.push_back({{std::make_shared<const Locality>()}, {}, {}});
  return endpoints;
}

class Pair {
 public:
  explicit Pair(const PriorityModel::Options& options)
      : options_(options), policy_(make_priority(options_like(options))), model_(options) {}

  void run(const Happening& next) {
    const Names children(running_.begin(), running_.end());
    const auto child = [&] { return children[next.child % children.size()]; };
    switch (next.kind) {
      case Happening::kUpdate:
        update(next.order);
        break;
      case Happening::kTime:
        advance(kTimes[next.time % std::size(kTimes)]);
        break;
      case Happening::kLateTimer:
        if (!cancelled_.empty()) step(TimerFired{cancelled_[next.time % cancelled_.size()]});
        break;
      case Happening::kReport:
        if (!children.empty()) report(child(), kStates[next.state % std::size(kStates)]);
        break;
      case Happening::kAnswer:
        if (!children.empty()) answer(child());
        break;
      case Happening::kOldAnswer:
        if (!children.empty() && !dead_.contains(child())) {
          step(ChildApplied{ChildName(child()), sent_.at(child()) - 1});
        }
        break;
      case Happening::kDeath:
        if (!children.empty()) die(child());
        break;
    }
    compare();
  }

 private:
  static constexpr Duration kTimes[] = {1s, 3s, 9s, 10s, 11s, 5min, 14min, 15min, 20min};
  static constexpr ConnectivityState kStates[] = {kIdle, kConnecting, kReady, kFailure};

  void update(const std::vector<std::uint8_t>& order) {
    PriorityConfig config;
    Names names;
    for (const std::uint8_t number : order) {
      const std::string name = "p" + std::to_string(number % 8);
      const bool is_new = config.children.try_emplace(ChildName(name)).second;
      if (!is_new) continue;
      config.children[ChildName(name)].config = child_config_;
      if (!options_.is_aggregate) config.children[ChildName(name)].slice = 0;
      config.priorities.emplace_back(name);
      names.push_back(name);
    }
    step(ConfigUpdated{++generation_, make_lb_config(std::move(config)), nullptr, new_endpoints()});
    model_.update(names);
  }

  void report(const std::string& child, ConnectivityState state) {
    dead_.erase(child);
    const std::string picker = child + " report " + std::to_string(++reports_);
    const auto status = state == kFailure ? absl::UnavailableError(picker) : absl::Status();
    step(ChildStateChanged{ChildName(child), state, status, named_picker(picker), generation_});
    model_.reported(child, state, "fail UNAVAILABLE: " + picker);
  }

  void answer(const std::string& child) {
    dead_.erase(child);
    step(ChildApplied{ChildName(child), sent_.at(child)});
    model_.answered(child);
  }

  void die(const std::string& child) {
    dead_.insert(child);
    step(ChildDied{ChildName(child)});
    model_.died(child);
  }

  // Timers fire one by one, as the policy set them. compare() has checked that the model set the
  // same timers.
  void advance(Duration duration) {
    const Instant until = now_ + duration;
    while (true) {
      const auto next =
          std::ranges::min_element(timers_, {}, [](const auto& timer) { return timer.second.due; });
      if (next == timers_.end() || next->second.due > until) break;
      const Timer timer = next->second;
      timers_.erase(next);
      now_ = timer.due;
      model_.time_is(now_);
      step(TimerFired{timer.id});
      model_.fired(timer.id.name);
      compare();
    }
    now_ = until;
    model_.time_is(now_);
  }

  void step(const LbEvent& event) {
    for (const LbEffect& effect : policy_->step(event, now_)) {
      if (const auto* start = std::get_if<StartChild>(&effect)) {
        RC_ASSERT(running_.insert(start->child.str()).second);
        sent_[start->child.str()] = start->update.generation;
      } else if (const auto* told = std::get_if<UpdateChild>(&effect)) {
        RC_ASSERT(running_.contains(told->child.str()));
        sent_[told->child.str()] = told->update.generation;
      } else if (const auto* stop = std::get_if<StopChild>(&effect)) {
        RC_ASSERT(running_.erase(stop->child.str()) == 1U);
        dead_.erase(stop->child.str());
      } else if (const auto* woken = std::get_if<ExitIdleChild>(&effect)) {
        woken_.insert(woken->child.str());
      } else if (const auto* timer = std::get_if<StartTimer>(&effect)) {
        RC_ASSERT(
            timers_.emplace(timer->timer.name, Timer{now_ + timer->delay, timer->timer}).second);
      } else if (const auto* cancel = std::get_if<CancelTimer>(&effect)) {
        RC_ASSERT(timers_.erase(cancel->timer.name) == 1U);
        cancelled_.push_back(cancel->timer);
      } else if (const auto* shown = std::get_if<Publish>(&effect)) {
        RC_ASSERT(!shown_ || shown_->picker != shown->picker || shown_->state != shown->state);
        shown_ = *shown;
        RC_ASSERT((shown->state == kFailure) == !shown->status.ok());
      } else if (const auto* applied = std::get_if<ReportApplied>(&effect)) {
        RC_ASSERT(applied->generation > applied_);
        applied_ = applied->generation;
      }
    }
  }

  void compare() {
    RC_ASSERT(std::exchange(woken_, {}) == model_.take_woken());
    RC_ASSERT(Names(running_.begin(), running_.end()) == model_.running());
    std::map<std::string, Instant> timers;
    for (const auto& [name, timer] : timers_)
      timers[name] = timer.due;
    RC_ASSERT(timers == model_.timers());
    RC_ASSERT(shown_.has_value() == model_.shown().has_value());
    if (!shown_) return;
    RC_ASSERT(shown_->state == model_.shown()->state);
    RC_ASSERT(to_text(shown_->picker->pick({})) == model_.shown()->picker);
  }

  struct Timer {
    Instant due;
    TimerId id;
  };

  const PriorityModel::Options options_;
  std::unique_ptr<Policy> policy_;
  PriorityModel model_;
  const LbConfigPtr child_config_ = make_lb_config(CdsConfig{});
  Instant now_{};
  Generation generation_ = 0;
  Generation applied_ = 0;
  int reports_ = 0;
  std::set<std::string> running_;
  std::set<std::string> dead_;
  std::set<std::string> woken_;  ///< Asked to leave IDLE since the last compare().
  std::map<std::string, Generation> sent_;
  std::map<std::string, Timer> timers_;
  std::vector<TimerId> cancelled_;
  std::optional<Publish> shown_;
};

}  // namespace

TEST_CASE("priority: does what A56 says, in every order of events",
          "[lb][priority][property][standby][A56][A115][B2][B3][B4][B5][S5]") {
  PriorityModel::Options options;
  options.keeps_removed = GENERATE(false, true);
  options.standbys = GENERATE(as<std::uint32_t>(), 0, 1, 2);
  CHECK(holds("priority beside the model", 3000, [&] {
    options.is_aggregate = *rc::gen::arbitrary<bool>();
    Pair pair(options);
    const auto story =
        *rc::gen::resize(120, rc::gen::container<std::vector<Happening>>(happenings()));
    for (const Happening& next : story)
      pair.run(next);
  }));
}

TEST_CASE("priority: the choice keeps the order, and is idempotent",
          "[lb][priority][property][A56][B3][S5]") {
  CHECK(holds("nobody above the chosen one could have been chosen",
              2000,
              [](const std::vector<PriorityChild>& children) {
                RC_PRE(!children.empty());
                const PriorityChoice choice = choose_priority(children);
                RC_ASSERT(choice.index < choice.considered);
                RC_ASSERT(choice.considered <= children.size());
                for (std::size_t above = 0; above < choice.index; ++above) {
                  RC_ASSERT(children[above].started);
                  RC_ASSERT(!is_usable(children[above].state));
                  RC_ASSERT(!children[above].failover_pending);
                }
              }));
  CHECK(holds(
      "the answer, acted upon, is the answer again", 2000, [](std::vector<PriorityChild> children) {
        RC_PRE(!children.empty());
        const PriorityChoice choice = choose_priority(children);
        PriorityChild& chosen = children[choice.index];
        if (!chosen.started) chosen = {true, kConnecting, true};
        const PriorityChoice again = choose_priority(children);
        RC_ASSERT(again.index == choice.index);
        RC_ASSERT(again.considered == choice.considered);
        RC_ASSERT(again.deactivate_lower == choice.deactivate_lower);
      }));
  CHECK(holds("what is below the chosen one does not matter, if that one is worth waiting for",
              2000,
              [](const std::vector<PriorityChild>& above, const std::vector<PriorityChild>& below) {
                auto children = above;
                children.push_back({true, kReady, false});
                const PriorityChoice alone = choose_priority(children);
                children.insert(children.end(), below.begin(), below.end());
                const PriorityChoice choice = choose_priority(children);
                RC_ASSERT(choice.index == alone.index);
                RC_ASSERT(choice.considered == alone.considered);
              }));
}
