// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cluster_manager.hpp"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/tree/child_set.hpp"
#include "lb/tree/cluster_manager_picker.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

ChildName child_of(const ClusterName& cluster) {
  return ChildName(cluster.str());
}

class ClusterManager final : public Policy {
 public:
  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    LbEffects effects;
    std::visit(Overloaded{
                   [&](const ConfigUpdated& update) { on(update, effects); },
                   [&](const ChildStateChanged& changed) { on(changed, effects); },
                   [&](const IdleExitRequested&) { exit_idle(effects); },
                   [&](const RebuildDue&) {
                     rebuild_ordered_ = false;
                     if (!changed_.empty()) publish_changes(effects);
                   },
                   [&](const auto&) { children_.hear_other(event, effects); },
               },
               event);
    children_.report_applied(effects);
    return effects;
  }

 private:
  void on(const ConfigUpdated& update, LbEffects& effects) {
    children_.begin(update);
    const auto old = std::exchange(config_, config_of<ClusterManagerConfig>(update));
    for (const auto& [cluster, child] : old.children) {
      const auto found = config_.children.find(cluster);
      const bool stays = found != config_.children.end() && found->second.config != nullptr;
      if (!stays) children_.stop(child_of(cluster), effects);
    }
    ClusterTable::Changes entries;
    for (const auto& [cluster, child] : config_.children) {
      if (child.config != nullptr) {
        children_.update(child_of(cluster), child.config, update.endpoints, effects);
      }
      entries.emplace_back(cluster, picker_of(cluster));
    }
    table_ = ClusterTable(std::move(entries));
    changed_.clear();
    publish(effects);
  }

  void on(const ChildStateChanged& changed, LbEffects& effects) {
    const ConnectivityState before = children_.aggregate();
    const Child* child = children_.hear(changed, effects);
    if (child == nullptr) return;
    changed_.emplace(child->name.str());
    if (children_.aggregate() != before) {
      publish_changes(effects);
    } else if (!std::exchange(rebuild_ordered_, true)) {
      effects.push_back(RebuildSoon{});
    }
  }

  void exit_idle(LbEffects& effects) const {
    children_.each(
        [&](const ChildName& name, const Child&) { children_.exit_idle(name, effects); });
  }

  void publish_changes(LbEffects& effects) {
    ClusterTable::Changes changes;
    for (const ClusterName& cluster : changed_)
      changes.emplace_back(cluster, picker_of(cluster));
    table_ = table_.with(changes);
    changed_.clear();
    publish(effects);
  }

  void publish(LbEffects& effects) const {
    const ConnectivityState state = children_.aggregate();
    const auto status = state == ConnectivityState::kTransientFailure
                            ? absl::UnavailableError("every cluster is in TRANSIENT_FAILURE")
                            : absl::OkStatus();
    effects.push_back(Publish{state, status, make_cluster_picker(table_), children_.generation()});
  }

  // The picker for calls to this cluster. A cluster without a child was deleted from the
  // configuration, and only calls that chose it before still refer to it.
  PickerPtr picker_of(const ClusterName& cluster) const {
    const ClusterManagerConfig::Child& config = config_.children.at(cluster);
    const Child* child = children_.find(child_of(cluster));
    if (child == nullptr) {
      return make_drop_picker(
          absl::UnavailableError(absl::StrCat("cluster ", cluster.str(), " was deleted")));
    }
    if (!config.retiring) return child->picker;
    return make_retiring_picker(cluster, child->picker);
  }

  ChildSet children_;
  ClusterManagerConfig config_;
  ClusterTable table_;
  std::set<ClusterName> changed_;  ///< Clusters with a new picker since the last publication.
  bool rebuild_ordered_ = false;
};

}  // namespace

std::unique_ptr<Policy> make_cluster_manager() {
  return std::make_unique<ClusterManager>();
}

}  // namespace signalbox::lb
