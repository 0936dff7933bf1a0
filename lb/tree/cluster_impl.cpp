// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cluster_impl.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/request_limit.hpp"
#include "lb/tree/cluster_impl_picker.hpp"
#include "lb/tree/endpoint_trackers.hpp"
#include "lb/tree/locality_loads.hpp"
#include "lb/tree/pass_through.hpp"

namespace signalbox::lb {
namespace {

/// The input of the CallRules (drops, limit, counters).
struct Terms {
  ClusterName cluster;
  std::string service_name;
  std::uint32_t max_concurrent_requests = 0;
  std::vector<DropCategory> drops;
  ClusterName aggregate;
  std::optional<LoadReporting> load_reporting;

  friend bool operator==(const Terms&, const Terms&) = default;
};

class ClusterImpl final : public PassThrough {
 public:
  explicit ClusterImpl(PolicyContext context) : context_(std::move(context)) {}

 private:
  Given give(const ConfigUpdated& update, Instant now, LbEffects& effects) override {
    const auto& own = config_of<ClusterImplConfig>(update);
    Terms terms{.cluster = own.cluster,
                .service_name = own.service_name,
                .max_concurrent_requests = own.max_concurrent_requests,
                .drops = {},
                .aggregate = own.aggregate,
                .load_reporting = own.load_reporting};
    if (update.endpoints != nullptr) terms.drops = update.endpoints->drops;
    count_endpoints(terms.cluster, update.endpoints);
    count_load(terms, update.endpoints, now);
    if (terms != terms_) {
      adopt(std::move(terms));
      show_breaker(effects);
    }
    return {own.child, update.endpoints};
  }

  PickerPtr show(const PickerPtr& picker) override {
    if (picker == of_child_ && rules_ == shown_rules_ && trackers_ == shown_trackers_ &&
        loads_ == shown_loads_)
      return shown_;
    of_child_ = picker;
    shown_loads_ = loads_;
    shown_rules_ = rules_;
    shown_trackers_ = trackers_;
    // Without drops, and without complete picks, there is nothing to do (I3 of cluster_impl.hpp).
    const bool has_no_say = rules_->drops.empty() && never_completes(picker);
    shown_ = has_no_say ? picker : make_cluster_impl_picker(counting(picker), rules_, loads_);
    return shown_;
  }

  PickerPtr counting(const PickerPtr& picker) const {
    return trackers_ == nullptr ? picker : make_endpoint_counting_picker(picker, trackers_);
  }

  // Makes the trackers that count calls by endpoint. Precondition: terms_ are still those of the
  // previous configuration.
  void count_endpoints(const ClusterName& cluster, const EndpointsPtr& endpoints) {
    EndpointCounters* const counters = context_.options.endpoint_counters.get();
    if (counters == nullptr) return;
    const bool is_same = terms_ && terms_->cluster == cluster;
    if (is_same && endpoints == counted_) return;
    trackers_ = std::make_shared<const EndpointTrackers>(
        cluster, endpoints, *counters, context_.retirement, is_same ? trackers_.get() : nullptr);
    counted_ = endpoints;
  }

  // Makes the trackers that count calls by locality for the load reports. Precondition: terms_ are
  // still those of the previous configuration.
  void count_load(const Terms& terms, const EndpointsPtr& endpoints, Instant now) {
    LoadBook* const book = context_.options.load_book.get();
    if (book == nullptr || !terms.load_reporting) {
      counts_ = nullptr;
      loads_ = nullptr;
      return;
    }
    const LoadReporting& to = *terms.load_reporting;
    const bool is_same = is_same_place(terms) && terms_->load_reporting &&
                         terms_->load_reporting->server == to.server &&
                         terms_->load_reporting->service == to.service;
    if (!is_same) counts_ = book->open(to.server, terms.cluster, to.service, now);
    if (counts_ == nullptr) {
      loads_ = nullptr;
      return;
    }
    if (is_same && terms.load_reporting == terms_->load_reporting && endpoints == loaded_) return;
    loads_ = std::make_shared<const LocalityLoads>(
        counts_, terms.load_reporting->metrics, endpoints, context_.retirement, loads_.get());
    loaded_ = endpoints;
  }

  void show_breaker(LbEffects& effects) {
    if (observed_ == rules_->gate) return;
    observed_ = rules_->gate;
    effects.push_back(Observe{CircuitBreakerSet{terms_->cluster, observed_}});
  }

  void adopt(Terms terms) {
    auto rules = std::make_shared<CallRules>();
    rules->cluster = terms.cluster.str();
    rules->service = terms.service_name;
    for (const DropCategory& drop : terms.drops) {
      if (drop.drop_per_million > 0) rules->drops.push_back(rule_for(drop, terms.cluster));
    }
    rules->gate = gate_for(terms);
    rules->leaf = leaf_for(terms);
    rules_ = std::move(rules);
    terms_ = std::move(terms);
  }

  CallRules::Drop rule_for(const DropCategory& drop, const ClusterName& cluster) const {
    auto* const metrics = context_.options.drop_counters.get();
    return {drop.drop_per_million,
            absl::UnavailableError(absl::StrCat("cluster ",
                                                cluster.str(),
                                                ": the control plane drops calls of category \"",
                                                drop.category,
                                                "\"")),
            metrics == nullptr ? nullptr : metrics->drops(cluster, drop.category),
            drop.category,
            counts_ == nullptr ? nullptr : counts_->drops(drop.category)};
  }

  // Whether `terms` are for the same cluster and EDS service as terms_, so that calls in flight
  // still count.
  bool is_same_place(const Terms& terms) const {
    return terms_ && terms.cluster == terms_->cluster && terms.service_name == terms_->service_name;
  }

  // The gate that limits calls in flight; the same one while cluster, service, limit and the
  // counter of the load reports are the same.
  RequestGatePtr gate_for(const Terms& terms) {
    if (is_same_place(terms) && terms.max_concurrent_requests == terms_->max_concurrent_requests &&
        counts_ == of_gate_)
      return rules_->gate;
    of_gate_ = counts_;
    auto* const metrics = context_.options.drop_counters.get();
    return make_tracked<RequestGate>(
        context_.retirement,
        limit_for(terms),
        terms.max_concurrent_requests,
        terms.cluster,
        metrics == nullptr ? nullptr : metrics->breaker_drops(terms.cluster),
        counts_ == nullptr ? nullptr : counts_->breaker_drops());
  }

  // The counter of calls below an aggregate; the same one while leaf and aggregate are the same.
  std::shared_ptr<const LeafCalls> leaf_for(const Terms& terms) const {
    if (terms.aggregate.empty()) return nullptr;
    const bool is_same =
        terms_ && terms.cluster == terms_->cluster && terms.aggregate == terms_->aggregate;
    if (is_same) return rules_->leaf;
    CallCounters* const counters = context_.options.call_counters.get();
    return make_tracked<LeafCalls>(context_.retirement,
                                   terms.cluster,
                                   counters == nullptr
                                       ? std::make_shared<const CallStats>()
                                       : counters->of_leaf(terms.aggregate, terms.cluster));
  }

  // The count of the cluster's calls in flight. It is shared with other policies, or, without
  // PolicyOptions::request_limits, found in own_limits_. So a new limit does not change the count.
  RequestLimitPtr limit_for(const Terms& terms) {
    if (auto* all = context_.options.request_limits.get())
      return all->of(terms.cluster, terms.service_name);
    return own_limits_.of(terms.cluster, terms.service_name);
  }

  const PolicyContext context_;
  RequestLimits own_limits_;
  std::optional<Terms> terms_;  ///< nullopt: before the first configuration.
  CallRulesPtr rules_;          ///< Made from terms_.
  CallGatePtr observed_;
  EndpointsPtr counted_;          ///< The endpoints for which trackers_ was made.
  EndpointTrackersPtr trackers_;  ///< Null: calls are not counted by endpoint.
  ClusterCountsPtr counts_;       ///< Null: the cluster's load is not reported.
  ClusterCountsPtr of_gate_;      ///< The counts_ with which the gate of rules_ was made.
  EndpointsPtr loaded_;           ///< The endpoints for which loads_ was made.
  LocalityLoadsPtr loads_;        ///< Null if counts_ is null.
  // The picker published last, and its inputs.
  PickerPtr of_child_;
  CallRulesPtr shown_rules_;
  EndpointTrackersPtr shown_trackers_;
  LocalityLoadsPtr shown_loads_;
  PickerPtr shown_;
};

}  // namespace

std::unique_ptr<Policy> make_cluster_impl(PolicyContext context) {
  return std::make_unique<ClusterImpl>(std::move(context));
}

}  // namespace signalbox::lb
