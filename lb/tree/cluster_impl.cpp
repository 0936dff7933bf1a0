// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/cluster_impl.hpp"

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/load_stats.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/request_limit.hpp"
#include "lb/tree/cluster_impl_picker.hpp"
#include "lb/tree/pass_through.hpp"

namespace signalbox::lb {
namespace {

std::set<LocalityName> localities_of(const EndpointsPtr& endpoints) {
  std::set<LocalityName> names;
  if (endpoints == nullptr) return names;
  for (const Priority& priority : endpoints->priorities) {
    for (const auto* part : {&priority.localities, &priority.degraded, &priority.unhealthy}) {
      for (const LocalityPtr& locality : *part)
        names.insert(locality->name);
    }
  }
  return names;
}

/// All that the rules are made of.
struct Terms {
  ClusterName cluster;
  std::string service_name;
  std::uint32_t max_concurrent_requests = 0;
  bool report_load = false;
  std::vector<DropCategory> drops;
  std::set<LocalityName> localities;
  ClusterName aggregate;

  friend bool operator==(const Terms&, const Terms&) = default;
};

class ClusterImpl final : public PassThrough {
 public:
  explicit ClusterImpl(PolicyContext context) : context_(std::move(context)) {}

 private:
  Given give(const ConfigUpdated& update, Instant /*now*/, LbEffects& effects) override {
    const auto& own = config_of<ClusterImplConfig>(update);
    Terms terms{.cluster = own.cluster,
                .service_name = own.service_name,
                .max_concurrent_requests = own.max_concurrent_requests,
                .report_load = own.report_load && context_.options.loads != nullptr,
                .drops = {},
                .localities = {},
                .aggregate = own.aggregate};
    if (update.endpoints != nullptr) terms.drops = update.endpoints->drops;
    if (terms.report_load) terms.localities = localities_of(update.endpoints);
    if (terms != terms_) {
      remember(update.generation, terms.localities);
      adopt(std::move(terms));
      show_breaker(effects);
    }
    return {own.child, update.endpoints};
  }

  PickerPtr show(const PickerPtr& picker) override {
    if (picker == of_child_ && rules_ == shown_rules_) return shown_;
    of_child_ = picker;
    shown_rules_ = rules_;
    const bool has_no_say = rules_->drops.empty() && never_completes(picker);  // I3
    shown_ = has_no_say ? picker : make_cluster_impl_picker(picker, rules_);
    return shown_;
  }

  void show_breaker(LbEffects& effects) {
    if (observed_ == rules_->gate) return;
    observed_ = rules_->gate;
    effects.push_back(Observe{CircuitBreakerSet{terms_->cluster, observed_}});
  }

  void adopt(Terms terms) {
    load_ =
        terms.report_load ? context_.options.loads->of(terms.cluster, terms.service_name) : nullptr;
    auto rules = std::make_shared<CallRules>();
    rules->cluster = terms.cluster.str();
    rules->service = terms.service_name;
    for (const DropCategory& drop : terms.drops) {
      if (drop.drop_per_million > 0) rules->drops.push_back(rule_for(drop, terms.cluster));
    }
    rules->gate = gate_for(terms);
    rules->leaf = leaf_for(terms);
    if (load_ != nullptr) track(terms, *rules);
    rules_ = std::move(rules);
    terms_ = std::move(terms);
  }

  CallRules::Drop rule_for(const DropCategory& drop, const ClusterName& cluster) const {
    DropCounts counts;
    if (auto* metrics = context_.options.drop_counters.get())
      counts.metric = metrics->drops(cluster, drop.category);
    if (load_ != nullptr) counts.load = load_->drops(drop.category);
    return {drop.drop_per_million,
            absl::UnavailableError(absl::StrCat("cluster ",
                                                cluster.str(),
                                                ": the control plane drops calls of category \"",
                                                drop.category,
                                                "\"")),
            std::move(counts),
            drop.category};
  }

  // Whether what was counted so far is counted on for `terms`.
  bool is_same_place(const Terms& terms) const {
    return terms_ && terms.cluster == terms_->cluster &&
           terms.service_name == terms_->service_name && terms.report_load == terms_->report_load;
  }

  // The same gate as long as it limits the same.
  RequestGatePtr gate_for(const Terms& terms) {
    if (is_same_place(terms) && terms.max_concurrent_requests == terms_->max_concurrent_requests)
      return rules_->gate;
    DropCounts refused;
    if (auto* metrics = context_.options.drop_counters.get())
      refused.metric = metrics->breaker_drops(terms.cluster);
    if (load_ != nullptr) refused.load = load_->uncategorised_drops();
    return make_tracked<RequestGate>(context_.retirement,
                                     limit_for(terms),
                                     terms.max_concurrent_requests,
                                     terms.cluster,
                                     std::move(refused));
  }

  // The same as long as the leaf is below the same aggregate.
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

  // Alone in the world, the count stays through a change of the limit all the same.
  RequestLimitPtr limit_for(const Terms& terms) {
    if (auto* all = context_.options.request_limits.get())
      return all->of(terms.cluster, terms.service_name);
    return own_limits_.of(terms.cluster, terms.service_name);
  }

  // The child's picker may know no other names than those of the list before the one that it has
  // applied: applied is not yet published. What is older goes.
  void remember(Generation since, const std::set<LocalityName>& names) {
    const auto next = names_.upper_bound(applied());
    for (auto left = std::distance(names_.begin(), next); left > 2; --left)
      names_.erase(names_.begin());
    if (names_.empty() || names_.rbegin()->second != names) names_[since] = names;
  }

  void track(const Terms& terms, CallRules& rules) {
    const bool same = is_same_place(terms);
    const auto tracker_for = [&](const LocalityName& name) -> CallTrackerPtr {
      if (same) {
        const auto known = rules_->localities.find(name);
        if (known != rules_->localities.end()) return known->second;
      }
      return make_tracked<LocalityTracker>(context_.retirement, load_->locality(name));
    };
    for (const auto& [since, names] : names_) {
      for (const LocalityName& name : names) {
        CallTrackerPtr& tracker = rules.localities[name];
        if (tracker == nullptr) tracker = tracker_for(name);
      }
    }
    rules.elsewhere = tracker_for({});
  }

  const PolicyContext context_;
  RequestLimits own_limits_;
  std::shared_ptr<LoadCounts> load_;  ///< Null: load is not reported.
  std::optional<Terms> terms_;        ///< nullopt: before the first configuration.
  CallRulesPtr rules_;                ///< Made of terms_.
  CallGatePtr observed_;
  /// The localities that the child may still serve from, by the generation that brought them.
  std::map<Generation, std::set<LocalityName>> names_;
  // What was published last, and what it was made of.
  PickerPtr of_child_;
  CallRulesPtr shown_rules_;
  PickerPtr shown_;
};

}  // namespace

std::unique_ptr<Policy> make_cluster_impl(PolicyContext context) {
  return std::make_unique<ClusterImpl>(std::move(context));
}

}  // namespace signalbox::lb
