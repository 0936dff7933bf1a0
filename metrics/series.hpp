// SPDX-License-Identifier: Apache-2.0
//
// SeriesTable — the values of all metrics that the control plane updates now and then.
//
//   instruments ─▶ add, set, record ─▶ [SeriesTable] ─▶ collect ─▶ exporter
//
// Thread-safe, by one mutex. Because of the mutex, the path of calls does not use this table but
// striped counters (CallStats).
//
// Invariant
//   M1  A metric has at most kMaxSeries series, and a few for "other". A further series is counted
//       under the label value "other". A gauge that is set cannot be shared, so a further gauge is
//       left out.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "metrics/names.hpp"

namespace signalbox::metrics {

inline constexpr std::size_t kMaxSeries = 2'000;
inline constexpr absl::string_view kOther = "other";

/// In the order of the metric's labels.
using LabelValues = std::vector<std::string>;

/// Counts per bucket, not cumulative. The last bucket is above all bounds.
struct Histogram {
  std::vector<std::uint64_t> counts;
  double sum = 0;
};

struct Series {
  LabelValues labels;
  double value = 0;
  Histogram histogram;  ///< Only for histogram metrics.
};

struct Family {
  const MetricRow* row = nullptr;
  std::vector<Series> series;
  std::span<const double> bounds = {};  ///< Only for histogram metrics.
};

class SeriesTable {
 public:
  explicit SeriesTable(LatencyScale scale = LatencyScale::kShort) : scale_(scale) {}

  void add(Metric metric, LabelValues labels, double amount);
  void set(Metric metric, LabelValues labels, double value);
  /// Puts the value into its bucket: seconds or bytes, as the metric's name says.
  void record(Metric metric, LabelValues labels, double amount);

  /// Counts one update of a series that the metric has no room for.
  void count_overflow(Metric metric);

  /// Drops the series that have this value as their first label.
  void forget(Metric metric, absl::string_view first_label);

  /// Drops the one series with these labels.
  void forget_one(Metric metric, const LabelValues& labels);

  /// Every value of a label with this name.
  std::set<std::string> values_of_label(absl::string_view label) const;

  /// Drops the series of all metrics that have a label with this name and one of these values.
  void forget_all(absl::string_view label, const std::set<std::string>& values);

  /// The metrics that have series, in the order of the table.
  std::vector<Family> collect() const;

 private:
  struct Value {
    double number = 0;
    Histogram histogram;
  };

  using Values = std::map<LabelValues, Value>;

  Values& values_of(Metric metric) { return values_[static_cast<std::size_t>(metric)]; }

  // The value to update: the series' own or, when the metric is full, the value of "other".
  Value& find_or_share(Metric metric, LabelValues labels);

  const LatencyScale scale_;
  mutable std::mutex mutex_;
  std::array<Values, kMetrics.size()> values_;
};

}  // namespace signalbox::metrics
