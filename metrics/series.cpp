// SPDX-License-Identifier: Apache-2.0
#include "metrics/series.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "messages/invariant.hpp"

namespace signalbox::metrics {
namespace {

LabelValues shared_labels(const MetricRow& row, LabelValues labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (row.labels[i].free_text) labels[i] = std::string(kOther);
  }
  return labels;
}

// The index of the metric's label with this name; nullopt: the metric has no such label.
std::optional<std::size_t> place_of(const MetricRow& row, absl::string_view label) {
  for (std::size_t i = 0; i < row.label_count(); ++i) {
    if (row.labels[i].name == label) return i;
  }
  return std::nullopt;
}

}  // namespace

SeriesTable::Value& SeriesTable::find_or_share(Metric metric, LabelValues labels) {
  const MetricRow& row = row_of(metric);
  SIGNALBOX_INVARIANT(labels.size() == row.label_count(), "each label has its value");
  Values& values = values_of(metric);
  const auto found = values.find(labels);
  if (found != values.end()) return found->second;
  if (values.size() < kMaxSeries) return values[std::move(labels)];
  ++values_of(Metric::kSeriesOverflow)[{std::string(row.name)}].number;
  return values[shared_labels(row, std::move(labels))];
}

void SeriesTable::add(Metric metric, LabelValues labels, double amount) {
  const std::lock_guard lock(mutex_);
  find_or_share(metric, std::move(labels)).number += amount;
}

void SeriesTable::set(Metric metric, LabelValues labels, double value) {
  const std::lock_guard lock(mutex_);
  Values& values = values_of(metric);
  if (values.size() >= kMaxSeries && !values.contains(labels)) {
    ++values_of(Metric::kSeriesOverflow)[{std::string(row_of(metric).name)}].number;
    return;
  }
  find_or_share(metric, std::move(labels)).number = value;
}

void SeriesTable::begin(Metric metric, LabelValues labels) {
  const std::lock_guard lock(mutex_);
  if (values_of(metric).size() < kMaxSeries / 2) find_or_share(metric, std::move(labels));
}

void SeriesTable::record(Metric metric, LabelValues labels, double amount) {
  record(metric, std::move(labels), std::span(&amount, 1));
}

void SeriesTable::record(Metric metric, LabelValues labels, std::span<const double> amounts) {
  const std::span<const double> bounds = bounds_of(row_of(metric).buckets, scale_);
  const std::lock_guard lock(mutex_);
  Histogram& histogram = find_or_share(metric, std::move(labels)).histogram;
  histogram.counts.resize(bounds.size() + 1);
  for (const double amount : amounts) {
    const auto bucket = std::ranges::lower_bound(bounds, amount);
    ++histogram.counts[static_cast<std::size_t>(bucket - bounds.begin())];
    histogram.sum += amount;
  }
}

void SeriesTable::count_overflow(Metric metric) {
  const std::lock_guard lock(mutex_);
  ++values_of(Metric::kSeriesOverflow)[{std::string(row_of(metric).name)}].number;
}

void SeriesTable::forget(Metric metric, absl::string_view first_label) {
  const std::lock_guard lock(mutex_);
  std::erase_if(values_of(metric),
                [&](const auto& entry) { return entry.first.front() == first_label; });
}

void SeriesTable::forget_one(Metric metric, const LabelValues& labels) {
  const std::lock_guard lock(mutex_);
  values_of(metric).erase(labels);
}

std::set<std::string> SeriesTable::values_of_label(absl::string_view label) const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> found;
  for (const MetricRow& row : kMetrics) {
    const std::optional<std::size_t> place = place_of(row, label);
    if (!place) continue;
    for (const auto& [labels, value] : values_[static_cast<std::size_t>(row.metric)])
      found.insert(labels[*place]);
  }
  return found;
}

void SeriesTable::forget_all(absl::string_view label, const std::set<std::string>& values) {
  const std::lock_guard lock(mutex_);
  for (const MetricRow& row : kMetrics) {
    const std::optional<std::size_t> place = place_of(row, label);
    if (!place) continue;
    std::erase_if(values_of(row.metric),
                  [&](const auto& entry) { return values.contains(entry.first[*place]); });
  }
}

std::vector<Family> SeriesTable::collect() const {
  const std::lock_guard lock(mutex_);
  std::vector<Family> families;
  for (const MetricRow& row : kMetrics) {
    const Values& values = values_[static_cast<std::size_t>(row.metric)];
    if (values.empty()) continue;
    Family& family = families.emplace_back(Family{&row, {}, bounds_of(row.buckets, scale_)});
    family.series.reserve(values.size());
    for (const auto& [labels, value] : values)
      family.series.push_back({labels, value.number, value.histogram});
  }
  return families;
}

}  // namespace signalbox::metrics
