// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/tiered.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/state_sum.hpp"
#include "lb/tree/child_set.hpp"
#include "lb/tree/cluster_tree.hpp"
#include "lb/tree/pending_update.hpp"
#include "lb/tree/published.hpp"
#include "lb/tree/tiered_picker.hpp"
#include "lb/tree/tiered_rules.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

ChildName child_of(const ClusterName& leaf) {
  return ChildName(leaf.str());
}

/// Reports to operators how the shares of calls (loads) of priorities change.
class LoadWatch {
 public:
  void record(const TieredConfig& config,
              const std::vector<ClusterName>& leaves,
              const std::vector<TierRow>& rows,
              LbEffects& effects) {
    std::map<Place, std::uint32_t> loads;
    for (const TierRow& row : rows)
      loads[{leaves[row.leaf], row.priority}] = row.load.sum();
    for (const auto& [place, percent] : reported_) {
      if (!loads.contains(place))
        effects.push_back(Observe{TierLoad{config.cluster, place.first, place.second, {}}});
    }
    for (const auto& [place, percent] : loads) {
      const auto reported = reported_.find(place);
      if (reported == reported_.end() || reported->second != percent)
        effects.push_back(Observe{TierLoad{config.cluster, place.first, place.second, percent}});
    }
    reported_ = std::move(loads);
  }

 private:
  using Place = std::pair<ClusterName, std::uint32_t>;  ///< Leaf and priority.

  std::map<Place, std::uint32_t> reported_;
};

class Tiered final : public Policy {
 public:
  explicit Tiered(PolicyOptions options) : options_(std::move(options)) {}

  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    LbEffects effects;
    std::visit(Overloaded{
                   [&](const ConfigUpdated& update) { on(update, effects); },
                   [&](const ChildStateChanged& changed) { on(changed, effects); },
                   [&](const TimerFired& fired) {
                     if (update_.ran_out(fired)) excuse_all();
                   },
                   [&](const IdleExitRequested&) { exit_idle(effects); },
                   [&](const auto&) { children_.hear_other(event, effects); },
               },
               event);
    if (update_.ended(children_, options_.failover_timeout, effects)) conclude(effects);
    if (!update_.is_pending() && std::exchange(is_stale_, false)) plan(effects);
    if (children_.generation() != 0) publish(effects);
    children_.report_applied(effects);
    return effects;
  }

 private:
  // --- configurations ---

  // The leaves find their own configuration in the XdsConfig of the update, so the update is sent
  // on even if the list of leaves is the same.
  void on(const ConfigUpdated& update, LbEffects& effects) {
    children_.begin(update);
    config_ = config_of<TieredConfig>(update);
    update_.begin();
    excuse_all();
    for (const ClusterName& leaf : config_.leaves)
      send(leaf, effects);
  }

  void send(const ClusterName& leaf, LbEffects& effects) {
    TierSetPtr& tiers = tiers_[leaf];
    if (tiers == nullptr) tiers = std::make_shared<const TierSet>();
    children_.update(child_of(leaf),
                     make_lb_config(CdsConfig{leaf, config_.lb_policy, tiers, config_.cluster}),
                     nullptr,
                     effects);
  }

  // Stops waiting for the leaves' answers to earlier updates. A leaf that is sent another update
  // afterwards is waited for again.
  void excuse_all() {
    for (const auto& [leaf, tiers] : tiers_)
      children_.excuse(child_of(leaf));
  }

  // All leaves have answered the configuration, or the time for it is over, so its list of leaves
  // takes effect. Children that are not in the list are stopped, also those that were started for a
  // configuration that was replaced before it took effect.
  void conclude(LbEffects& effects) {
    std::erase_if(tiers_, [&](const auto& entry) {
      const ClusterName& leaf = entry.first;
      if (std::ranges::count(config_.leaves, leaf) != 0) return false;
      children_.stop(child_of(leaf), effects);
      reports_.erase(leaf);
      return true;
    });
    leaves_ = config_.leaves;
    is_stale_ = true;
  }

  // --- reports of leaves ---

  void on(const ChildStateChanged& changed, LbEffects& effects) {
    const Child* child = children_.hear(changed, effects);
    if (child == nullptr) return;
    if (child->hosts == nullptr && child->state != ConnectivityState::kTransientFailure) return;
    reports_[ClusterName(child->name.str())] = child->hosts;
    is_stale_ = true;
  }

  void plan(LbEffects& effects) {
    std::vector<HostReportPtr> reports;
    for (const ClusterName& leaf : leaves_) {
      const auto found = reports_.find(leaf);
      reports.push_back(found == reports_.end() ? nullptr : found->second);
    }
    TierPlan next = plan_tiers(reports, config_.panic_threshold.value_or(options_.panic_threshold));
    const bool is_same_table = next.shares == plan_.shares && planned_ == leaves_;
    plan_ = std::move(next);
    planned_ = leaves_;
    if (!is_same_table) {
      table_ = plan_.shares.empty() ? nullptr : std::make_shared<const TierTable>(plan_.shares);
    }
    for (std::size_t at = 0; at < leaves_.size(); ++at) {
      TierSetPtr& tiers = tiers_.at(leaves_[at]);
      if (*tiers == plan_.connected[at]) continue;
      tiers = std::make_shared<const TierSet>(plan_.connected[at]);
      send(leaves_[at], effects);
    }
    watch_.record(config_, leaves_, plan_.rows, effects);
  }

  void exit_idle(LbEffects& effects) const {
    for (const ClusterName& leaf : leaves_)
      children_.exit_idle(child_of(leaf), effects);
  }

  // --- publications ---

  void publish(LbEffects& effects) {
    if (table_ != nullptr) {
      const auto [state, status] = state_of_leaves();
      published_.publish({state, status, picker(), children_.generation()}, effects);
    } else if (planned_.empty() && !config_.leaves.empty()) {
      published_.publish(
          {ConnectivityState::kConnecting, {}, make_queue_picker(), children_.generation()},
          effects);
    } else {
      const absl::Status why = absl::UnavailableError(nobody());
      if (failure_ != why) failure_picker_ = make_fail_picker(why);
      failure_ = why;
      published_.publish(
          {ConnectivityState::kTransientFailure, failure_, picker(), children_.generation()},
          effects);
    }
  }

  std::pair<ConnectivityState, absl::Status> state_of_leaves() const {
    StateCounts in_state{};
    absl::Status status;
    for (const TierShare& share : plan_.shares) {
      const Child& leaf = *children_.find(child_of(planned_[share.leaf]));
      ++in_state[index_of(leaf.lasting_state)];
      if (!leaf.status.ok())
        status = with_note(leaf.status, absl::StrCat("cluster ", leaf.name.str(), ": "));
    }
    const ConnectivityState state = sum_of(in_state);
    if (state != ConnectivityState::kTransientFailure) status = absl::OkStatus();
    return {state, status};
  }

  // The picker for the current table and leaves; the same one again while they are the same.
  PickerPtr picker() {
    TieredParts parts{config_.cluster, table_, planned_, {}, nullptr};
    for (const ClusterName& leaf : planned_)
      parts.leaves.push_back(children_.find(child_of(leaf))->picker);
    if (table_ == nullptr) {
      // No tier gets calls. But sessions may stay on hosts that take no other calls (DRAINING).
      if (!have_sessions(parts.leaves)) return failure_picker_;
      parts.otherwise = failure_picker_;
    }
    if (shown_ != nullptr && shown_parts_ == parts) return shown_;
    shown_parts_ = parts;
    shown_ = make_tiered_picker(std::move(parts));
    return shown_;
  }

  // The text of the failure, such as "no endpoint is healthy: primary 0 of 3 (why), secondary 0 of
  // 0".
  std::string nobody() const {
    if (planned_.empty()) return "the aggregate has no clusters";
    std::string text = "no endpoint is healthy";
    const char* separator = ": ";
    for (const ClusterName& leaf : planned_) {
      absl::StrAppend(&text, separator, leaf.str());
      separator = ", ";
      const auto found = reports_.find(leaf);
      if (found != reports_.end() && found->second != nullptr) {
        std::uint64_t fit = 0;
        std::uint64_t all = 0;
        for (const PriorityHosts& at : found->second->priorities) {
          fit += at.healthy.hosts + at.degraded.hosts;
          all += at.total.hosts;
        }
        absl::StrAppend(&text, " ", fit, " of ", all);
      }
      const Child& child = *children_.find(child_of(leaf));
      if (!child.status.ok()) absl::StrAppend(&text, " (", child.status.message(), ")");
    }
    return text;
  }

  const PolicyOptions options_;
  TieredConfig config_;
  ChildSet children_;
  PendingUpdate update_;
  std::vector<ClusterName> leaves_;  ///< The leaves in the last configuration that took effect.
  std::map<ClusterName, TierSetPtr> tiers_;       ///< The tiers sent last to each child.
  std::map<ClusterName, HostReportPtr> reports_;  ///< The newest reports (T4).
  bool is_stale_ = false;  ///< leaves_ or reports_ have changed since plan_ was made.
  TierPlan plan_;
  std::vector<ClusterName> planned_;  ///< leaves_ when plan_ was made.
  TierTablePtr table_;                ///< Made from plan_; null: no tier has a share.
  LoadWatch watch_;
  Published published_;
  absl::Status failure_;
  PickerPtr failure_picker_;
  // The picker that make_tiered_picker() made last, and its parts.
  TieredParts shown_parts_;
  PickerPtr shown_;
};

}  // namespace

std::unique_ptr<Policy> make_tiered(PolicyOptions options) {
  return std::make_unique<Tiered>(std::move(options));
}

}  // namespace signalbox::lb
