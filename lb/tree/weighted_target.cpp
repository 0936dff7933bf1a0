// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/weighted_target.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/health/host_count.hpp"
#include "lb/health/zone_split.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/trace.hpp"
#include "lb/tree/child_set.hpp"
#include "lb/tree/published.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

/// A child that takes part in the draw. It gets the draws from the `end` of the one before up to,
/// but not including, its own `end`.
struct TargetShare {
  std::uint64_t end = 0;
  ChildPicker picker;
};

/// For explanations: a target as it was when the picker was made. `name` points into the
/// configuration.
struct TargetState {
  const ChildName* name = nullptr;
  std::uint32_t weight = 0;  ///< In a draw by zones, its share of kAllCalls.
  ConnectivityState state = ConnectivityState::kIdle;
  absl::Status status;

  friend bool operator==(const TargetState&, const TargetState&) = default;
};

/// The targets that take part in the draw (`in`), and those that do not (`out`).
struct TargetStates {
  LbConfigPtr config;  ///< Owns the names in `in` and `out`.
  std::vector<TargetState> in;
  std::vector<TargetState> out;
  std::string zones = {};  ///< zone_text(); empty: the draw is not by zones (W4).

  friend bool operator==(const TargetStates&, const TargetStates&) = default;
};

using TargetStatesPtr = std::shared_ptr<const TargetStates>;

constexpr absl::string_view kWeightedTarget = "weighted_target";

class TargetNote final : public PickNote {
 public:
  explicit TargetNote(TargetStatesPtr targets) : targets_(std::move(targets)) {}

  void tell(const PickArgs& /*args*/, PickTrace& trace) const override {
    for (const TargetState& target : targets_->out)
      trace.tell(
          {std::string(kWeightedTarget), "not locality " + target.name->str(), why(target), "EDS"});
    if (targets_->in.size() == 1) {
      trace.tell({std::string(kWeightedTarget),
                  "locality " + targets_->in.front().name->str(),
                  targets_->zones.empty() ? "the only one that can take calls" : targets_->zones,
                  targets_->zones.empty() ? "EDS" : "CDS"});
    }
  }

 private:
  std::string why(const TargetState& target) const {
    if (target.weight == 0) return targets_->zones.empty() ? "its weight is 0" : targets_->zones;
    std::string text(to_string(target.state));
    if (!target.status.ok()) absl::StrAppend(&text, ": ", target.status.message());
    return text;
  }

  TargetStatesPtr targets_;
};

class WeightedPicker final : public Picker {
 public:
  WeightedPicker(std::vector<TargetShare> shares, TargetStatesPtr targets)
      : shares_(std::move(shares)), targets_(std::move(targets)) {}

  [[gnu::hot]] PickResult pick(const PickArgs& args) const override {
    return decide(args, Silent{});
  }

  PickResult explain(const PickArgs& args, PickTrace& trace) const override {
    return decide(args, Telling{trace});
  }

 private:
  template <typename Sink>
  [[gnu::always_inline]] PickResult decide(const PickArgs& args, const Sink& sink) const {
    const std::uint64_t drawn = draw_below(args.seed, Salt::kLocality, shares_.back().end);
    const auto chosen = std::ranges::upper_bound(shares_, drawn, {}, &TargetShare::end);
    sink.tell([&] {
      const auto place = static_cast<std::size_t>(chosen - shares_.begin());
      const TargetState& target = targets_->in[place];
      return PickStep{std::string(kWeightedTarget),
                      "locality " + target.name->str(),
                      absl::StrCat(shown_draw(drawn, shares_.back().end),
                                   "; its weight is ",
                                   target.weight,
                                   ", from ",
                                   chosen->end - target.weight,
                                   targets_->zones.empty() ? "" : "; ",
                                   targets_->zones),
                      targets_->zones.empty() ? "EDS" : "CDS"};
    });
    PickResult result = chosen->picker.ask(args, sink);
    if (args.tried != nullptr && leads_back(result, args)) [[unlikely]]
      return ask_others(chosen - shares_.begin(), args, std::move(result), sink);
    return result;
  }

  static bool leads_back(const PickResult& result, const PickArgs& args) {
    const auto* complete = std::get_if<Complete>(&result.outcome);
    return complete != nullptr && complete->connection != nullptr &&
           was_tried(args, *complete->connection);
  }

  // The drawn locality would send the call to an address that the call avoids: asks the other
  // localities in turn. `back` is the result of the drawn locality.
  template <typename Sink>
  [[gnu::noinline]] PickResult ask_others(std::ptrdiff_t drawn,
                                          const PickArgs& args,
                                          PickResult back,
                                          const Sink& sink) const {
    // `back` has an ask, which its picker will not send again, so `back` must be returned.
    if (back.ask) return back;
    for (std::size_t step = 1; step < shares_.size(); ++step) {
      const TargetShare& other = shares_[(static_cast<std::size_t>(drawn) + step) % shares_.size()];
      PickResult result = other.picker.ask(args, sink);
      if (std::holds_alternative<Complete>(result.outcome) && !leads_back(result, args))
        return result;
      if (result.ask) {
        back.ask = std::move(result.ask);
        back.ask_target = result.ask_target;
        return back;
      }
    }
    return back;
  }

  std::vector<TargetShare> shares_;  ///< Two or more, with rising `end`.
  TargetStatesPtr targets_;          ///< For explanations; `in` has the order of shares_.
};

/// The endpoints of one target, which is one locality.
EndpointsPtr endpoints_in(const EndpointsPtr& endpoints, const LocalityName& name) {
  auto slice = std::make_shared<Endpoints>();
  Priority& only = slice->priorities.emplace_back();
  if (endpoints == nullptr) return slice;
  for (const Priority& priority : endpoints->priorities) {
    const auto found = std::ranges::find(
        priority.localities, name, [](const LocalityPtr& locality) { return locality->name; });
    if (found == priority.localities.end()) continue;
    only.localities.push_back(*found);
    break;
  }
  return slice;
}

class WeightedTarget final : public Policy {
 public:
  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    LbEffects effects;
    std::visit(Overloaded{
                   [&](const ConfigUpdated& update) { on(update, effects); },
                   [&](const ChildStateChanged& changed) { on(changed, effects); },
                   [&](const IdleExitRequested&) { exit_idle(effects); },
                   [&](const RebuildDue&) {
                     rebuild_ordered_ = false;
                     if (dirty_ || miscounted_) publish(effects);
                   },
                   [&](const auto&) { children_.hear_other(event, effects); },
               },
               event);
    // The HostReport must be about the new configuration before the configuration is reported as
    // applied.
    if (miscounted_ && children_.reached() > children_.applied()) publish(effects);
    children_.report_applied(effects);
    return effects;
  }

 private:
  void on(const ConfigUpdated& update, LbEffects& effects) {
    children_.begin(update);
    const auto& targets = config_of<WeightedTargetConfig>(update).targets;
    const LbConfigPtr old = std::exchange(config_, update.config);
    if (old != nullptr) {
      for (const auto& [name, target] : std::get<WeightedTargetConfig>(*old).targets) {
        if (!targets.contains(name)) children_.stop(name, effects);
      }
    }
    for (const auto& [name, target] : targets) {
      children_.update_if_changed(
          name, target.config, endpoints_in(update.endpoints, target.locality), effects);
    }
    dirty_ = miscounted_ = true;
    publish(effects);
  }

  void on(const ChildStateChanged& changed, LbEffects& effects) {
    const ConnectivityState before = children_.aggregate();
    const Child* known = children_.find(changed.child);
    const HostReportPtr hosts = known == nullptr ? nullptr : known->hosts;
    const PickerPtr picker = known == nullptr ? nullptr : known->picker;
    const Child* child = children_.hear(changed, effects);
    if (child == nullptr) return;
    if (child->state == ConnectivityState::kIdle) children_.exit_idle(child->name, effects);
    const bool is_other_state = child->state != child->state_before;
    const bool is_other_count =
        !same_hosts(hosts, child->hosts) || (child->hosts == nullptr && is_other_state);
    miscounted_ |= is_other_count;
    dirty_ |= picker != child->picker || is_other_state;
    dirty_ |= is_other_count && config().zone_aware.has_value();
    if (!dirty_ && !miscounted_) return;
    if (children_.aggregate() != before) {
      publish(effects);
    } else if (!std::exchange(rebuild_ordered_, true)) {
      effects.push_back(RebuildSoon{});
    }
  }

  void exit_idle(LbEffects& effects) const {
    children_.each(
        [&](const ChildName& name, const Child&) { children_.exit_idle(name, effects); });
  }

  // Publishes state, picker and HostReport. Makes a new picker or HostReport only if a child or the
  // configuration has changed.
  void publish(LbEffects& effects) {
    const ConnectivityState state = children_.aggregate();
    if (std::exchange(dirty_, false) || shown_ == nullptr) shown_ = picker_of(state);
    if (std::exchange(miscounted_, false) || hosts_ == nullptr) hosts_ = sum();
    published_.publish({state, status_of(state), shown_, children_.generation(), hosts_}, effects);
  }

  HostReportPtr sum() const {
    PriorityHosts sum;
    children_.each([&](const ChildName&, const Child& child) {
      const PriorityHosts own = hosts_of(child);
      add(sum.healthy, own.healthy);
      add(sum.total, own.total);
    });
    return fit_of(sum.healthy, sum.total);
  }

  const WeightedTargetConfig& config() const { return std::get<WeightedTargetConfig>(*config_); }

  const std::map<ChildName, WeightedTargetConfig::Target>& all_targets() const {
    return config().targets;
  }

  absl::Status status_of(ConnectivityState state) const {
    if (state != ConnectivityState::kTransientFailure) return absl::OkStatus();
    if (all_targets().empty()) return absl::UnavailableError("has no endpoints");
    std::string last;
    children_.each([&](const ChildName&, const Child& child) {
      if (!child.status.ok()) last = std::string(child.status.message());
    });
    return absl::UnavailableError(absl::StrCat("every locality failed, the last with: ", last));
  }

  // The weight of each child in `state`, in the order of children_; other children are not drawn.
  // With zone_aware, READY children have shares of kAllCalls, and `zones` gets the reason (W4).
  std::vector<std::uint32_t> weigh(ConnectivityState state, std::string& zones) const {
    std::vector<std::uint32_t> weights;
    std::vector<ZonePlace> places;
    std::uint64_t fit = 0;
    children_.each([&](const ChildName& name, const Child& child) {
      const auto& target = all_targets().at(name);
      weights.push_back(target.weight);
      const bool is_drawn = child.lasting_state == state;
      const HostTally healthy = is_drawn ? hosts_of(child).healthy : HostTally{};
      places.push_back({&target.locality, target.weight, healthy.hosts, healthy.weight});
      fit += healthy.hosts;
    });
    // No endpoint is fit in panic, when tiered sends calls to all of them.
    if (!config().zone_aware || state != ConnectivityState::kReady || fit == 0) return weights;
    ZoneSplit split = split_by_zone(places, config().caller, *config().zone_aware);
    zones = zone_text(split, config().caller, *config().zone_aware);
    return std::move(split.shares);
  }

  PickerPtr picker_of(ConnectivityState state) {
    if (state == ConnectivityState::kConnecting) return make_queue_picker();
    std::vector<TargetShare> shares;
    auto targets = std::make_shared<TargetStates>();
    targets->config = config_;
    const std::vector<std::uint32_t> weights = weigh(state, targets->zones);
    auto weight_at = weights.begin();
    std::uint64_t total = 0;
    children_.each([&](const ChildName& child_name, const Child& child) {
      const ChildName& name = all_targets().find(child_name)->first;
      const std::uint32_t weight = *weight_at++;
      const bool takes_part = child.lasting_state == state && weight > 0;
      (takes_part ? targets->in : targets->out)
          .push_back({&name,
                      child.lasting_state == state ? weight : all_targets().at(name).weight,
                      child.lasting_state,
                      child.status});
      if (!takes_part) return;
      total += weight;
      shares.push_back({total, ChildPicker(child.picker)});
    });
    if (shares.empty()) return make_fail_picker(absl::UnavailableError("has no endpoints"));
    // With one share no draw is needed.
    if (shares.size() == 1) return only(shares.front().picker.get(), std::move(targets));
    const bool all_in = targets->out.empty();
    PickerPtr picker = std::make_shared<const WeightedPicker>(std::move(shares), targets);
    if (all_in) return picker;
    return make_explained_picker(std::move(picker), std::make_shared<const TargetNote>(targets));
  }

  // The picker when one target gets all calls. If other targets take no part, explanations say so.
  // Returns the same picker again while the child's picker, the configuration, and the states and
  // statuses of the targets are the same.
  PickerPtr only(const PickerPtr& picker, TargetStatesPtr targets) {
    if (targets->out.empty()) return picker;
    if (only_ != picker || *only_targets_ != *targets) {
      only_ = picker;
      only_targets_ = std::move(targets);
      explained_only_ =
          make_explained_picker(picker, std::make_shared<const TargetNote>(only_targets_));
    }
    return explained_only_;
  }

  ChildSet children_;
  Published published_;
  LbConfigPtr config_;   ///< Null: none yet.
  PickerPtr shown_;      ///< The picker published last.
  HostReportPtr hosts_;  ///< The HostReport published last.
  // For only(): its last result, and what that was made from.
  PickerPtr only_;
  TargetStatesPtr only_targets_;
  PickerPtr explained_only_;
  bool dirty_ = false;       ///< A child's newest picker or state, or config_, is not published.
  bool miscounted_ = false;  ///< A child's newest count of hosts is not published yet.
  bool rebuild_ordered_ = false;
};

}  // namespace

std::unique_ptr<Policy> make_weighted_target() {
  return std::make_unique<WeightedTarget>();
}

}  // namespace signalbox::lb
