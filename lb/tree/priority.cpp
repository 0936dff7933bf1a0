// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/priority.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/trace.hpp"
#include "lb/tree/child_set.hpp"
#include "lb/tree/kept_picker.hpp"
#include "lb/tree/pending_update.hpp"
#include "lb/tree/priority_rules.hpp"
#include "lb/tree/priority_watch.hpp"
#include "lb/tree/published.hpp"
#include "lb/tree/retention.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {

namespace {

/// The endpoints of one priority as a list of their own, without degraded and unhealthy ones. If
/// the priority does not exist, the list is empty.
EndpointsPtr endpoints_of(const EndpointsPtr& endpoints, std::size_t priority) {
  auto slice = std::make_shared<Endpoints>();
  const bool exists = endpoints != nullptr && priority < endpoints->priorities.size();
  Priority& only = slice->priorities.emplace_back();
  if (exists) only.localities = endpoints->priorities[priority].localities;
  return slice;
}

// --- what explanations say ---------------------------------------------------

/// For explanations: the priorities that a choice examined, as they were when the choice was made.
class ChoiceNote final : public PickNote {
 public:
  struct Considered {
    const ChildName* name = nullptr;  ///< Points into the configuration.
    ConnectivityState state = ConnectivityState::kConnecting;
    absl::Status status;
    std::optional<Instant> window_ends;  ///< When its failover window ends, if one is open.
  };

  ChoiceNote(LbConfigPtr config, std::vector<Considered> considered, std::size_t chosen)
      : config_(std::move(config)), considered_(std::move(considered)), chosen_(chosen) {}

  void tell(const PickArgs& /*args*/, PickTrace& trace) const override {
    const auto now = now_of(trace);
    for (std::size_t place = 0; place < considered_.size(); ++place) {
      const Considered& one = considered_[place];
      std::string why(to_string(one.state));
      if (!one.status.ok()) absl::StrAppend(&why, ": ", one.status.message());
      if (one.window_ends) {
        absl::StrAppend(&why, "; its failover window ");
        if (now && *one.window_ends > *now) {
          absl::StrAppend(&why, "runs for ", shown(*one.window_ends - *now), " more");
        } else {
          absl::StrAppend(&why, "is open");
        }
      } else if (one.state == ConnectivityState::kConnecting) {
        absl::StrAppend(&why, "; its failover window is over");
      }
      trace.tell(
          {"priority",
           absl::StrCat(place == chosen_ ? "" : "not ", "priority ", place, called(*one.name)),
           why,
           one.window_ends ? "runtime option failover_timeout" : source()});
    }
  }

  /// Whether the notes differ at most in the texts of failures. Such a difference is not worth a
  /// publication, because these texts may change with every attempt to connect.
  bool is_like(const ChoiceNote& other) const {
    const auto same = [](const Considered& a, const Considered& b) {
      return *a.name == *b.name && a.state == b.state && a.window_ends == b.window_ends;
    };
    return chosen_ == other.chosen_ && config().cluster == other.config().cluster &&
           config().priorities.size() == other.config().priorities.size() &&
           std::ranges::equal(considered_, other.considered_, same);
  }

 private:
  const PriorityConfig& config() const { return std::get<PriorityConfig>(*config_); }

  bool is_aggregate() const { return !config().children.begin()->second.slice.has_value(); }

  std::string called(const ChildName& name) const {
    return absl::StrCat(" of ",
                        config().priorities.size(),
                        is_aggregate() ? ": cluster " + name.str() : std::string());
  }

  // The name of the resource that lists the priorities.
  std::string source() const {
    return is_aggregate() ? "CDS " + config().cluster.str() : std::string("EDS");
  }

  LbConfigPtr config_;
  std::vector<Considered> considered_;
  std::size_t chosen_;
};

/// The policy's knowledge about a started child, beside the child's own reports.
struct Life {
  /// The child reported READY or IDLE more recently than TRANSIENT_FAILURE.
  bool was_usable = false;
  bool has_been_ready = false;
  std::optional<TimerId> failover;  ///< Set while the failover window is open.
  Instant failover_ends{};          ///< The end of the failover window.
  bool expired = false;             ///< Its retention ended while a configuration was pending (P5).
  Instant since{};                  ///< When the child's state began.
};

class PriorityPolicy final : public Policy {
 public:
  explicit PriorityPolicy(PolicyOptions options) : options_(std::move(options)) {}

  LbEffects step(const LbEvent& event, Instant now) override {
    LbEffects effects;
    std::visit(Overloaded{
                   [&](const ConfigUpdated& update) { on(update, effects); },
                   [&](const ChildStateChanged& changed) { on(changed, now, effects); },
                   [&](const ChildAskedReresolution& asked) { on(asked, effects); },
                   [&](const TimerFired& fired) { on(fired, now, effects); },
                   [&](const IdleExitRequested&) {
                     if (current_) children_.exit_idle(*current_, effects);
                   },
                   [&](const auto&) { children_.hear_other(event, effects); },
               },
               event);
    conclude_updates(now, effects);
    children_.report_applied(effects);
    return effects;
  }

 private:
  // Configurations are applied one at a time. If several arrive while one is pending, only the
  // newest is applied next.
  void on(const ConfigUpdated& update, LbEffects& effects) {
    if (update_.begin_in_turn(update)) begin_update(update, effects);
  }

  void begin_update(const ConfigUpdated& update, LbEffects& effects) {
    source_ = update.config;
    config_ = config_of<PriorityConfig>(update);
    endpoints_ = update.endpoints;
    children_.begin(update);
    for (const auto& [name, life] : lives_) {
      if (config_.children.contains(name)) {
        send(name, effects);
      } else {
        children_.excuse(name);
      }
    }
  }

  // When all children have answered the pending configuration, or their time is over: chooses, then
  // begins the configuration that waits, if there is one.
  void conclude_updates(Instant now, LbEffects& effects) {
    while (update_.ended(children_, options_.failover_timeout, effects)) {
      choose(now, effects);
      drop_unnamed(effects);
      drop_expired(effects);
      if (const auto next = update_.begin_waiting()) begin_update(*next, effects);
    }
  }

  // Stops the children that the configuration does not name any more. With keep_removed_priorities
  // deactivates them, so that they stop after kPriorityRetention (P4 of priority.hpp).
  void drop_unnamed(LbEffects& effects) {
    std::vector<ChildName> unnamed;
    for (const auto& [name, life] : lives_) {
      if (!config_.children.contains(name)) unnamed.push_back(name);
    }
    for (const ChildName& name : unnamed)
      options_.keep_removed_priorities ? deactivate(name, effects) : destroy(name, effects);
  }

  // Stops children with an ended retention (Life::expired). While a configuration is pending, they
  // are kept, because the choice for it may need them.
  void drop_expired(LbEffects& effects) {
    std::vector<ChildName> expired;
    for (const auto& [name, life] : lives_) {
      if (life.expired) expired.push_back(name);
    }
    for (const ChildName& name : expired)
      destroy(name, effects);
  }

  void on(const ChildStateChanged& changed, Instant now, LbEffects& effects) {
    const Child* child = children_.hear(changed, effects);
    if (child == nullptr) return;
    Life& life = lives_.at(child->name);
    if (child->state != child->state_before) life.since = now;
    if (child->state == ConnectivityState::kConnecting) {
      const bool began = child->state_before != ConnectivityState::kConnecting;
      if (began && life.was_usable) open_window(child->name, life, now, effects);
    } else {
      life.was_usable = is_usable(child->state);
      if (child->state == ConnectivityState::kReady) life.has_been_ready = true;
      cancel(life.failover, effects);
    }
    if (!update_.is_pending()) {
      choose(now, effects);
    } else if (current_ == child->name && is_usable(child->state)) {
      publish(child->state, child->status, placed(child->state, child->picker), effects);
    }
  }

  void on(const ChildAskedReresolution& asked, LbEffects& effects) {
    const Child* child = children_.hear(asked);
    if (child == nullptr) return;
    const auto found = config_.children.find(child->name);
    const bool passes =
        found != config_.children.end() && !found->second.ignore_reresolution_requests;
    if (passes) children_.hear_other(asked, effects);
  }

  void on(const TimerFired& fired, Instant now, LbEffects& effects) {
    if (update_.ran_out(fired)) {
      for (const auto& [name, life] : lives_)
        children_.excuse(name);
      return;
    }
    const auto failed_over = std::ranges::find_if(
        lives_, [&](const auto& entry) { return entry.second.failover == fired.timer; });
    if (failed_over != lives_.end()) {
      failed_over->second.failover.reset();
      if (!update_.is_pending()) choose(now, effects);
      return;
    }
    if (const auto expired = retention_.ran_out(fired)) {
      lives_.at(*expired).expired = true;
      if (!update_.is_pending()) drop_expired(effects);
    }
  }

  // Chooses the child that carries the calls, starts it if need be, and publishes its state and
  // picker.
  void choose(Instant now, LbEffects& effects) {
    if (config_.priorities.empty()) {
      const auto status = absl::UnavailableError("priority policy has empty priority list");
      current_.reset();
      watch_.record(config_, {}, std::nullopt, now, effects);
      if (!empty_picker_) empty_picker_ = make_fail_picker(status);
      publish(ConnectivityState::kTransientFailure, status, empty_picker_, effects);
      return;
    }
    const std::vector<PriorityChild> children = view();
    const PriorityChoice choice = choose_priority(children, standbys());
    for (std::size_t i = 0; i < choice.considered; ++i)
      activate(config_.priorities[i], now, effects);
    const std::size_t needed = choice.considered + choice.standbys;
    for (std::size_t i = choice.considered; i < needed; ++i)
      stand_by(config_.priorities[i], now, effects);
    if (choice.deactivate_lower) {
      for (std::size_t i = needed; i < config_.priorities.size(); ++i)
        deactivate(config_.priorities[i], effects);
    }
    current_ = config_.priorities[choice.index];
    place_ = choice.index;
    record_choice(choice);
    const Child& chosen = *children_.find(*current_);
    watch_.record(config_,
                  seen(),
                  is_usable(chosen.state) ? std::optional(choice.index) : std::nullopt,
                  now,
                  effects);
    if (chosen.state == ConnectivityState::kTransientFailure && children.size() > 1) {
      publish_failure(chosen, choice.index, effects);
    } else {
      publish(chosen.state, chosen.status, placed(chosen.state, chosen.picker), effects);
    }
  }

  // Makes the note that explains the choice. A list of one priority gets no note: there is no
  // choice.
  void record_choice(const PriorityChoice& choice) {
    std::vector<ChoiceNote::Considered> considered;
    const auto& names = std::get<PriorityConfig>(*source_).priorities;
    for (std::size_t place = 0; place < choice.considered && names.size() > 1; ++place) {
      const Child& child = *children_.find(names[place]);
      const Life& life = lives_.at(names[place]);
      considered.push_back({&names[place],
                            child.state,
                            child.status,
                            life.failover ? std::optional(life.failover_ends) : std::nullopt});
    }
    if (considered.empty()) {
      note_ = nullptr;
      return;
    }
    auto note = std::make_shared<const ChoiceNote>(source_, std::move(considered), choice.index);
    if (note_ == nullptr || !note_->is_like(*note)) note_ = std::move(note);
  }

  // `picker`, with note_ for explanations. Returns the same picker again while both are the same.
  PickerPtr explained(const PickerPtr& picker) {
    return note_ == nullptr ? picker : explained_.get(make_explained_picker, picker, note_);
  }

  // `picker`, with note_ for explanations. While the child is not READY, the result of a pick also
  // has the number of the priority for which the call waits or that made it fail. For a READY child
  // that is left out, so that its picks cost no more.
  PickerPtr placed(ConnectivityState state, const PickerPtr& picker) {
    if (state == ConnectivityState::kReady) return explained(picker);
    return explained(placed_.get(make_priority_picker, picker, place_));
  }

  // All children have failed: publishes the failure of the last one. The text has that child's
  // number (0 is the highest priority) and, below an aggregate, its cluster.
  void publish_failure(const Child& last, std::size_t place, LbEffects& effects) {
    const bool is_cluster = !config_.children.at(last.name).slice.has_value();
    const std::string note = absl::StrCat("all ",
                                          config_.priorities.size(),
                                          " priorities failed; priority ",
                                          place,
                                          is_cluster ? ", cluster " + last.name.str() : "",
                                          ": ");
    const PickerPtr& failing = failing_.get(make_noted_picker, last.picker, note, "");
    publish(last.state, with_note(last.status, note), placed(last.state, failing), effects);
  }

  // The state of each priority, for operators.
  std::vector<PrioritySeen> seen() const {
    std::vector<PrioritySeen> seen;
    seen.reserve(config_.priorities.size());
    for (const ChildName& name : config_.priorities) {
      PrioritySeen& one = seen.emplace_back();
      one.name = name;
      const auto life = lives_.find(name);
      if (life == lives_.end()) continue;
      const Child& child = *children_.find(name);
      one.started = true;
      one.state = child.state;
      one.since = life->second.since;
      if (child.state == ConnectivityState::kTransientFailure) one.status = child.status;
      if (life->second.failover) one.window_ends = life->second.failover_ends;
    }
    return seen;
  }

  std::vector<PriorityChild> view() const {
    std::vector<PriorityChild> view;
    view.reserve(config_.priorities.size());
    for (const ChildName& name : config_.priorities) {
      const auto life = lives_.find(name);
      if (life == lives_.end()) {
        view.emplace_back();
      } else {
        view.push_back({true,
                        children_.find(name)->state,
                        life->second.failover.has_value(),
                        life->second.has_been_ready});
      }
    }
    return view;
  }

  // Starts the child, or keeps it from being stopped.
  void activate(const ChildName& name, Instant now, LbEffects& effects) {
    const auto [found, is_new] = lives_.try_emplace(name);
    if (is_new) {
      found->second.since = now;
      send(name, effects);
      open_window(name, found->second, now, effects);
    } else {
      retention_.end(name, effects);
      found->second.expired = false;
    }
  }

  // Makes the child a standby (P7 of priority.hpp). An IDLE child, such as ring_hash, must be told
  // to connect.
  void stand_by(const ChildName& name, Instant now, LbEffects& effects) {
    activate(name, now, effects);
    if (children_.find(name)->state == ConnectivityState::kIdle) children_.exit_idle(name, effects);
  }

  // The number of standbys. For an aggregate at most one, the next leaf: that leaf has standbys
  // among its own priorities.
  std::size_t standbys() const {
    const bool is_aggregate = !config_.children.at(config_.priorities.front()).slice.has_value();
    return is_aggregate ? std::min<std::size_t>(options_.standby_priorities, 1)
                        : options_.standby_priorities;
  }

  void deactivate(const ChildName& name, LbEffects& effects) {
    const auto found = lives_.find(name);
    if (found != lives_.end() && !found->second.expired) retention_.begin(name, effects);
  }

  void destroy(const ChildName& name, LbEffects& effects) {
    const auto found = lives_.find(name);
    cancel(found->second.failover, effects);
    retention_.end(name, effects);
    children_.stop(name, effects);
    lives_.erase(found);
  }

  void send(const ChildName& name, LbEffects& effects) {
    const PriorityConfig::Child& child = config_.children.at(name);
    if (child.slice) {
      children_.update_if_changed(
          name, child.config, endpoints_of(endpoints_, *child.slice), effects);
    } else {
      children_.update(name, child.config, nullptr, effects);
    }
  }

  void open_window(const ChildName& name, Life& life, Instant now, LbEffects& effects) {
    cancel(life.failover, effects);
    life.failover_ends = now + options_.failover_timeout;
    life.failover = TimerId{"failover/" + name.str(), ++timers_};
    effects.push_back(StartTimer{*life.failover, options_.failover_timeout});
  }

  static void cancel(std::optional<TimerId>& timer, LbEffects& effects) {
    if (timer) effects.push_back(CancelTimer{*timer});
    timer.reset();
  }

  void publish(ConnectivityState state,
               const absl::Status& status,
               const PickerPtr& picker,
               LbEffects& effects) {
    published_.publish({state, status, picker, children_.generation()}, effects);
  }

  const PolicyOptions options_;
  PriorityConfig config_;
  LbConfigPtr source_;  ///< The configuration that config_ was copied from.
  EndpointsPtr endpoints_;
  ChildSet children_;
  std::map<ChildName, Life> lives_;  ///< One Life for each child of children_.
  std::optional<ChildName> current_;
  std::size_t place_ = 0;     ///< The index of current_ in the list that it was chosen from.
  Retention retention_;       ///< The deactivated children.
  PendingUpdate update_;      ///< The pending configuration (P5, P6).
  std::uint64_t timers_ = 0;  ///< Generation of the failover timer started last.
  Published published_;
  PickerPtr empty_picker_;
  std::shared_ptr<const ChoiceNote> note_;  ///< It explains the choice; null: none.
  KeptPicker<PickerPtr, std::string, std::string> failing_;  ///< Of publish_failure().
  KeptPicker<PickerPtr, std::shared_ptr<const ChoiceNote>> explained_;
  KeptPicker<PickerPtr, std::size_t> placed_;  ///< For a child that is not READY.
  PriorityWatch watch_;
};

}  // namespace

std::unique_ptr<Policy> make_priority(PolicyOptions options) {
  return std::make_unique<PriorityPolicy>(std::move(options));
}

}  // namespace signalbox::lb
