// SPDX-License-Identifier: Apache-2.0
#include "lb/tree/locality_loads.hpp"

#include <cstddef>

#include "messages/counting/load_counts.hpp"

namespace signalbox::lb {
namespace {

// This many locality objects at most are found by pointer, further ones by name.
constexpr std::size_t kMostByPointer = 8;

using Utilization = LocalityCounts::Utilization;

class LocalityTracker final : public CallTracker {
 public:
  LocalityTracker(LocalityCountsPtr counts, std::shared_ptr<const LoadMetricChoice> metrics)
      : counts_(std::move(counts)),
        metrics_(std::move(metrics)),
        wants_load_(!metrics_->is_empty()) {}

  void begun() const noexcept override { counts_->begun(); }

  // A call that never reached the endpoint (end.code is nullopt) counts as failed; begun() has
  // counted it as issued.
  void ended(const CallEnd& end) const noexcept override {
    if (end.load != nullptr && wants_load_) take(*end.load);
    counts_->ended(end.code == 0);
  }

  bool wants_load() const noexcept override { return wants_load_; }

 private:
  void take(const LoadReport& load) const noexcept {
    const auto take_if = [&](bool chosen, Utilization which, double value) {
      if (chosen && value > 0) counts_->add_utilization(which, value);
    };
    take_if(metrics_->cpu_utilization, Utilization::kCpu, load.cpu_utilization);
    take_if(metrics_->mem_utilization, Utilization::kMem, load.mem_utilization);
    take_if(
        metrics_->application_utilization, Utilization::kApplication, load.application_utilization);
    if (!metrics_->all_named && metrics_->named.empty()) return;
    for (const LoadMetric& metric : load.metrics) {
      if (metric.map != LoadMetric::Map::kNamedMetrics) continue;
      if (metrics_->all_named || metrics_->named.contains(metric.name))
        counts_->add_named(metric.name, metrics_->prefixed, metric.value);
    }
  }

  const LocalityCountsPtr counts_;
  const std::shared_ptr<const LoadMetricChoice> metrics_;
  const bool wants_load_;
};

}  // namespace

LocalityLoads::LocalityLoads(ClusterCountsPtr counts,
                             const LoadMetricChoice& metrics,
                             const EndpointsPtr& endpoints,
                             const std::shared_ptr<Retirement>& retirement,
                             const LocalityLoads* before)
    : counts_(std::move(counts)) {
  if (before != nullptr && (before->counts_ != counts_ || *before->metrics_ != metrics))
    before = nullptr;
  metrics_ =
      before != nullptr ? before->metrics_ : std::make_shared<const LoadMetricChoice>(metrics);
  others_ = before != nullptr ? before->others_
                              : make_tracked<LocalityTracker>(
                                    retirement, counts_->locality(LocalityName{}), metrics_);
  if (endpoints != nullptr) {
    for (const Priority& priority : endpoints->priorities) {
      for (const auto* const localities : priority.lists()) {
        for (const LocalityPtr& locality : *localities)
          add(locality, retirement, before);
      }
    }
  }
  if (before == nullptr) return;
  for (const LocalityName& name : before->own_)
    by_name_.emplace(name, before->by_name_.at(name));
}

void LocalityLoads::add(const LocalityPtr& locality,
                        const std::shared_ptr<Retirement>& retirement,
                        const LocalityLoads* before) {
  CallTrackerPtr& tracker = by_name_[locality->name];
  if (tracker == nullptr) {
    own_.push_back(locality->name);
    const auto known = before == nullptr ? decltype(by_name_)::const_iterator()
                                         : before->by_name_.find(locality->name);
    if (before != nullptr && known != before->by_name_.end()) {
      tracker = known->second;
    } else {
      tracker =
          make_tracked<LocalityTracker>(retirement, counts_->locality(locality->name), metrics_);
    }
  }
  if (by_pointer_.size() < kMostByPointer) by_pointer_.emplace_back(locality, tracker);
}

const CallTracker& LocalityLoads::of(const Complete& complete) const {
  if (complete.endpoint == nullptr || complete.endpoint->locality == nullptr) return *others_;
  const Locality* const chosen = complete.endpoint->locality.get();
  for (const auto& [locality, tracker] : by_pointer_) {
    if (locality.get() == chosen) return *tracker;
  }
  const auto found = by_name_.find(chosen->name);
  return found == by_name_.end() ? *others_ : *found->second;
}

}  // namespace signalbox::lb
