// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cds.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/tree/child_set.hpp"
#include "lb/tree/cluster_tree.hpp"
#include "lb/tree/kept_picker.hpp"
#include "lb/tree/published.hpp"
#include "messages/overloaded.hpp"

namespace signalbox::lb {
namespace {

UpstreamTlsPtr tls_of(const Cluster& cluster) {
  if (!cluster.tls.has_value()) return nullptr;
  return std::make_shared<const UpstreamTls>(*cluster.tls);
}

SubchannelSettings subchannel_settings(const Cluster& cluster,
                                       const LeafEndpoints& leaf,
                                       const std::string& authority) {
  return {
      .cluster = cluster.name,
      .connect_timeout = cluster.connect_timeout,
      .tls = tls_of(cluster),
      .health_checks = cluster.health_checks,
      .probe_exceptions = leaf.endpoints == nullptr ? nullptr : leaf.endpoints->probe_exceptions,
      .authority = authority,
      .max_connections = cluster.max_connections_per_endpoint};
}

/// The endpoints, with at least one priority. If EDS has none, an empty priority is added, and the
/// policy of that priority reports that there are no endpoints (A37-23, A37-25).
EndpointsPtr at_least_one_priority(const EndpointsPtr& endpoints) {
  if (endpoints != nullptr && !endpoints->priorities.empty()) return endpoints;
  auto one = endpoints == nullptr ? std::make_shared<Endpoints>()
                                  : std::make_shared<Endpoints>(*endpoints);
  one->priorities.emplace_back();
  return one;
}

/// Leaves out DEGRADED, UNHEALTHY and TIMEOUT endpoints, which only the policy tiered may use (D4
/// of cds.hpp).
EndpointsPtr without_unfit(const EndpointsPtr& endpoints) {
  const auto has_unfit = [](const Priority& priority) {
    return !priority.degraded.empty() || !priority.unhealthy.empty();
  };
  if (std::ranges::none_of(endpoints->priorities, has_unfit)) return endpoints;
  auto fit = std::make_shared<Endpoints>(*endpoints);
  for (Priority& priority : fit->priorities) {
    priority.degraded.clear();
    priority.unhealthy.clear();
  }
  return fit;
}

class Cds final : public Policy {
 public:
  explicit Cds(AggregateMode mode) : mode_(mode) {}

  LbEffects step(const LbEvent& event, Instant /*now*/) override {
    LbEffects effects;
    std::visit(Overloaded{
                   [&](const ConfigUpdated& update) { on(update, effects); },
                   [&](const ChildStateChanged& changed) {
                     if (children_.hear(changed, effects) != nullptr) publish(effects);
                   },
                   [&](const IdleExitRequested&) { children_.exit_idle(the_child(), effects); },
                   [&](const auto&) { children_.hear_other(event, effects); },
               },
               event);
    settle(effects);
    children_.report_applied(effects);
    return effects;
  }

 private:
  void on(const ConfigUpdated& update, LbEffects& effects) {
    children_.begin(update);
    const CdsConfig& own = config_of<CdsConfig>(update);
    const ClusterName& name = own.cluster;
    SIGNALBOX_INVARIANT(update.xds != nullptr, "cds receives the configuration");
    authority_ = update.xds->authority;
    const auto found = update.xds->clusters.find(name);
    if (found == update.xds->clusters.end()) {
      const auto gone =
          absl::UnavailableError(absl::StrCat("cluster ", name.str(), " was deleted"));
      fail(gone, make_drop_picker(gone), effects);
    } else if (!found->second.ok()) {
      const auto why = absl::UnavailableError(found->second.status().message());
      fail(why, make_fail_picker(why), effects);
    } else {
      serve(*found->second, own, may_have_sessions(*update.xds), effects);
    }
  }

  void serve(const ClusterConfigPtr& config,
             const CdsConfig& own,
             bool sessions,
             LbEffects& effects) {
    if (const auto* leaf = std::get_if<LeafEndpoints>(&config->children)) {
      const bool is_same = sessions == sessions_ && same_config(own.lb_policy, override_);
      // The leaf gets no update if neither its configuration, nor the policy that its aggregate
      // sets for it, nor `sessions` has changed, unless it is under tiered (D3 of cds.hpp).
      if (config == served_ && is_same && own.tiers == nullptr && tiers_ == nullptr) return;
      override_ = own.lb_policy;
      tiers_ = own.tiers;
      sessions_ = sessions;
      serve_leaf(*config->cluster, *leaf, own.aggregate, effects);
    } else {
      serve_aggregate(*config->cluster, std::get<AggregateLeaves>(config->children), effects);
    }
    served_ = config;
    publish(effects);
  }

  void serve_leaf(const Cluster& cluster,
                  const LeafEndpoints& leaf,
                  const ClusterName& aggregate,
                  LbEffects& effects) {
    effects.push_back(ServeSubchannels{
        subchannel_settings(cluster, leaf, authority_), children_.generation(), leaf.endpoints});
    map_ = Map::kOpen;
    unsettled_ = children_.generation();
    note_ = leaf.resolution_note;
    const EndpointsPtr endpoints = at_least_one_priority(leaf.endpoints);
    const LbConfigPtr& lb_policy = override_ == nullptr ? cluster.lb_policy : override_;
    children_.update(
        the_child(),
        leaf_tree(cluster, lb_policy, names_.assign(*endpoints), sessions_, tiers_, aggregate),
        tiers_ == nullptr ? without_unfit(endpoints) : endpoints,
        effects);
  }

  // Sends the update on even if the aggregate has not changed, because a leaf may have. The leaves
  // find their own configuration in the XdsConfig of the update.
  void serve_aggregate(const Cluster& cluster, const AggregateLeaves& leaves, LbEffects& effects) {
    if (map_ == Map::kOpen) map_ = Map::kClosing;
    unsettled_.reset();
    note_.clear();
    children_.update(the_child(),
                     aggregate_tree(cluster, leaves, cluster.aggregate_mode.value_or(mode_)),
                     nullptr,
                     effects);
  }

  void fail(const absl::Status& status, PickerPtr picker, LbEffects& effects) {
    if (served_ == nullptr && failure_ == status) return;  // This failure is published already.
    served_ = nullptr;
    failure_ = status;
    unsettled_.reset();
    published_.publish(
        {ConnectivityState::kTransientFailure, status, std::move(picker), children_.generation()},
        effects);
    children_.clear(effects);
    close(effects);
  }

  void publish(LbEffects& effects) {
    const Child& child = *children_.find(the_child());
    const bool has_note = child.state == ConnectivityState::kTransientFailure && !note_.empty();
    if (has_note) {
      const std::string note = absl::StrCat(" (", note_, ")");
      published_.publish({child.state,
                          with_note(child.status, "", note),
                          noted_.get(make_noted_picker, child.picker, "", note),
                          children_.generation(),
                          child.hosts},
                         effects);
    } else {
      published_.publish(
          {child.state, child.status, child.picker, children_.generation(), child.hosts}, effects);
    }
    if (map_ == Map::kClosing && !child.replacing) close(effects);
  }

  void close(LbEffects& effects) {
    if (map_ != Map::kClosed) effects.push_back(CloseSubchannels{});
    map_ = Map::kClosed;
  }

  void settle(LbEffects& effects) {
    if (!unsettled_ || children_.reached() < *unsettled_) return;
    effects.push_back(SettleSubchannels{*unsettled_});
    unsettled_.reset();
  }

  /// The subchannel map of a leaf cluster. kClosing: the cluster is an aggregate now, but the
  /// policies of the old leaf still serve.
  enum class Map { kClosed, kOpen, kClosing };

  const AggregateMode mode_;  ///< For an aggregate that sets no mode.
  ChildSet children_;
  PriorityNames names_;
  Published published_;
  ClusterConfigPtr served_;  ///< Null: the cluster has no valid configuration.
  absl::Status failure_;     ///< Why served_ is null.
  LbConfigPtr override_;     ///< The last CdsConfig::lb_policy.
  TierSetPtr tiers_;         ///< The last CdsConfig::tiers.
  bool sessions_ = false;    ///< The last result of may_have_sessions().
  std::string authority_;    ///< The target's authority.
  std::string note_;         ///< The leaf's resolution_note, for errors; may be empty.
  KeptPicker<PickerPtr, std::string, std::string> noted_;
  Map map_ = Map::kClosed;
  /// The newest generation that was sent to the map, until the policies below have applied it.
  std::optional<Generation> unsettled_;
};

}  // namespace

std::unique_ptr<Policy> make_cds(AggregateMode mode) {
  return std::make_unique<Cds>(mode);
}

}  // namespace signalbox::lb
