// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/endpoint_weight.hpp"

#include <algorithm>
#include <cmath>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace signalbox::lb {
namespace {

double find_metric(const LoadReport& report, LoadMetric::Map map, absl::string_view name) {
  for (const LoadMetric& metric : report.metrics) {
    if (metric.map == map && metric.name == name) return metric.value;
  }
  return 0;
}

// The value of the metric called "cpu_utilization", "named_metrics.queue", …; 0: the report has
// none.
double metric_of(const LoadReport& report, absl::string_view name) {
  if (name == "application_utilization") return report.application_utilization;
  if (name == "cpu_utilization") return report.cpu_utilization;
  if (name == "mem_utilization") return report.mem_utilization;
  if (absl::ConsumePrefix(&name, "named_metrics."))
    return find_metric(report, LoadMetric::Map::kNamedMetrics, name);
  if (absl::ConsumePrefix(&name, "utilization."))
    return find_metric(report, LoadMetric::Map::kUtilization, name);
  return 0;
}

// Values that are not positive and finite count as 0. Reports that come through the Pick API have
// not been checked.
double usable(double value) {
  return std::isfinite(value) && value > 0 ? value : 0;
}

double utilization_of(const LoadReport& report, const WeightRules& rules) {
  if (const double application = usable(report.application_utilization); application > 0)
    return application;
  double most = 0;
  for (const std::string& name : rules.metric_names)
    most = std::max(most, usable(metric_of(report, name)));
  return most > 0 ? most : usable(report.cpu_utilization);
}

}  // namespace

double weight_of(const LoadReport& report, const WeightRules& rules) {
  const double qps = usable(report.qps);
  const double utilization = utilization_of(report, rules);
  if (qps == 0 || utilization == 0) return 0;
  return usable(qps / (utilization + usable(report.eps) / qps * rules.error_utilization_penalty));
}

void EndpointWeight::update(double weight, Instant now) const {
  const Instant::rep at = now.time_since_epoch().count();
  weight_.store(weight, std::memory_order_relaxed);
  last_update_.store(at, std::memory_order_relaxed);
  if (non_empty_since_.load(std::memory_order_relaxed) == kNever)
    non_empty_since_.store(at, std::memory_order_relaxed);
}

EndpointWeight::Answer EndpointWeight::ask(Instant now, const Periods& periods) const {
  const Instant::rep last = last_update_.load(std::memory_order_relaxed);
  if (last == kNever) return {};
  if (now - Instant(Instant::duration(last)) >= periods.expiration) {
    non_empty_since_.store(kNever, std::memory_order_relaxed);
    return {0, WeightUse::kStale};
  }
  if (periods.blackout > Duration::zero()) {
    const Instant::rep since = non_empty_since_.load(std::memory_order_relaxed);
    if (since == kNever) return {};
    if (now - Instant(Instant::duration(since)) < periods.blackout) return {};
  }
  return {weight_.load(std::memory_order_relaxed), WeightUse::kUsable};
}

void WeightListener::reported(const LoadReport& report, Instant now) const noexcept {
  const double weight = weight_of(report, *rules_);
  if (weight > 0) weight_->update(weight, now);
}

WeightTracker::WeightTracker(const EndpointWeightPtr& weight, const WeightRulesPtr& rules)
    : weight_(weight),
      rules_(rules),
      listener_(rules->streamed ? std::make_shared<const WeightListener>(weight, rules) : nullptr) {
}

void WeightTracker::ended(const CallEnd& end) const noexcept {
  if (end.load == nullptr || !wants_load()) return;
  const double weight = weight_of(*end.load, *rules_);
  if (weight > 0) weight_->update(weight, end.now);
}

}  // namespace signalbox::lb
