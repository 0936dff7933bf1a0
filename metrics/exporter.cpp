// SPDX-License-Identifier: Apache-2.0
#include "metrics/exporter.hpp"

#include <limits>
#include <span>
#include <sstream>
#include <utility>

#include "prometheus/text_serializer.h"

#include "metrics/process.hpp"

namespace signalbox::metrics {
namespace {

prometheus::MetricType type_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return prometheus::MetricType::Counter;
    case MetricKind::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricKind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric::Histogram cumulative(const Histogram& histogram,
                                               std::span<const double> bounds) {
  prometheus::ClientMetric::Histogram out;
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    out.sample_count += histogram.counts[i];
    const double bound = i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity();
    out.bucket.push_back({out.sample_count, bound});
  }
  out.sample_sum = histogram.sum;
  return out;
}

prometheus::ClientMetric to_prometheus(const Family& family, const Series& series) {
  const MetricRow& row = *family.row;
  prometheus::ClientMetric metric;
  for (std::size_t i = 0; i < series.labels.size(); ++i) {
    const Label& label = row.labels[i];
    if (label.optional && series.labels[i].empty()) continue;
    metric.label.push_back({std::string(label.name), series.labels[i]});
  }
  switch (row.kind) {
    case MetricKind::kCounter:
      metric.counter.value = series.value;
      break;
    case MetricKind::kGauge:
      metric.gauge.value = series.value;
      break;
    case MetricKind::kHistogram:
      metric.histogram = cumulative(series.histogram, family.bounds);
      break;
  }
  return metric;
}

void append(const std::vector<Family>& families, std::vector<prometheus::MetricFamily>& to) {
  for (const Family& family : families) {
    const MetricRow& row = *family.row;
    prometheus::MetricFamily& out = to.emplace_back();
    out.name = std::string(row.name);
    out.help = std::string(row.help);
    out.type = type_of(row.kind);
    out.metric.reserve(family.series.size());
    for (const Series& series : family.series)
      out.metric.push_back(to_prometheus(family, series));
  }
}

}  // namespace

std::vector<prometheus::MetricFamily> Exporter::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  append(instruments_->collect(), families);
  return families;
}

std::string Exporter::text() const {
  std::vector<prometheus::MetricFamily> families = Collect();
  if (process_ != nullptr) append(process_families(process_()), families);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace signalbox::metrics
