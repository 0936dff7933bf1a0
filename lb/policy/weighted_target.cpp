// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/weighted_target.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/child_set.hpp"
#include "lb/config_of.hpp"
#include "lb/health/host_count.hpp"
#include "lb/pickers.hpp"
#include "lb/published.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

/// A child's share of the calls: those that draw less than `end`, and not less than the one before.
struct Share {
  std::uint64_t end = 0;
  PickerPtr picker;
};

class WeightedPicker final : public Picker {
 public:
  explicit WeightedPicker(std::vector<Share> shares) : shares_(std::move(shares)) {}

  PickResult pick(const PickArgs& args) const override {
    const std::uint64_t drawn = draw_below(args.seed, Salt::kLocality, shares_.back().end);
    const auto chosen = std::ranges::upper_bound(shares_, drawn, {}, &Share::end);
    return chosen->picker->pick(args);
  }

 private:
  std::vector<Share> shares_;  ///< Two or more; `end` rises.
};

/// The endpoints of one target: its locality and nothing else.
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
                   [&](const ChildApplied& applied) { children_.hear(applied); },
                   [&](const ChildDied& died) { children_.hear(died); },
                   [&](const IdleExitRequested&) { exit_idle(effects); },
                   [&](const RebuildDue&) {
                     rebuild_ordered_ = false;
                     if (dirty_ || miscounted_) publish(effects);
                   },
                   [](const auto&) {},
               },
               event);
    // What is said of the hosts before is of the configuration that is reported.
    if (miscounted_ && children_.reached() > children_.applied()) publish(effects);
    children_.report_applied(effects);
    return effects;
  }

 private:
  void on(const ConfigUpdated& update, LbEffects& effects) {
    children_.begin(update);
    const auto old = std::exchange(config_, config_of<WeightedTargetConfig>(update));
    for (const auto& [name, target] : old.targets) {
      if (!config_.targets.contains(name)) children_.stop(name, effects);
    }
    for (const auto& [name, target] : config_.targets) {
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
    miscounted_ |= !same_hosts(hosts, child->hosts);
    const bool is_other_state = child->state != child->state_before;
    miscounted_ |= child->hosts == nullptr && is_other_state;
    dirty_ |= picker != child->picker || is_other_state;
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

  // A picker that would choose as the one before does is not built again.
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

  absl::Status status_of(ConnectivityState state) const {
    if (state != ConnectivityState::kTransientFailure) return absl::OkStatus();
    if (config_.targets.empty()) return absl::UnavailableError("there is no locality");
    std::string last;
    children_.each([&](const ChildName&, const Child& child) {
      if (!child.status.ok()) last = std::string(child.status.message());
    });
    return absl::UnavailableError(absl::StrCat("every locality failed, the last with: ", last));
  }

  PickerPtr picker_of(ConnectivityState state) const {
    if (state == ConnectivityState::kConnecting) return make_queue_picker();
    std::vector<Share> shares;
    std::uint64_t total = 0;
    children_.each([&](const ChildName& name, const Child& child) {
      const std::uint32_t weight = config_.targets.at(name).weight;
      if (child.lasting_state != state || weight == 0) return;
      total += weight;
      shares.push_back({total, child.picker});
    });
    // With one share there is nothing to draw.
    if (shares.size() == 1) return shares.front().picker;
    if (!shares.empty()) return std::make_shared<const WeightedPicker>(std::move(shares));
    return make_fail_picker(absl::UnavailableError("there is no locality"));
  }

  ChildSet children_;
  Published published_;
  WeightedTargetConfig config_;
  PickerPtr shown_;  ///< What was published last,
  HostReportPtr hosts_;
  bool dirty_ = false;       ///< A child's picker or state is not in what was published last,
  bool miscounted_ = false;  ///< nor what one says of its hosts.
  bool rebuild_ordered_ = false;
};

}  // namespace

std::unique_ptr<Policy> make_weighted_target() {
  return std::make_unique<WeightedTarget>();
}

}  // namespace signalbox::lb
