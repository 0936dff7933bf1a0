// SPDX-License-Identifier: Apache-2.0
//
// SeriesTable — the values of most metrics that are updated off the path of calls.
//
//   instruments ─▶ add, set, record ─▶ [SeriesTable] ─▶ collect ─▶ exporter
//
// Thread-safe, by one mutex. Calls must not wait for a mutex, so they do not count in this table
// but in striped counters (CallStats).
//
// Invariant
//   M1  A metric has at most kMaxSeries series, and a few with the label value "other". add() and
//       record() count a further series under "other". set() leaves a further series out, because
//       "other" cannot show the gauges of several objects as one value. begin() leaves the second
//       half of the limit to series with values.

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

/// The values of a series' labels, in the order of the metric's labels (names.hpp).
using LabelValues = std::vector<std::string>;

/// Counts per bucket, not cumulative. The last bucket counts the values above all bounds.
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
  /// Exports a counter with 0 before its first event, because rate() and increase() of Prometheus
  /// do not see the event that creates a series. Does nothing if the series exists, or if the
  /// metric has kMaxSeries / 2 series or more.
  void begin(Metric metric, LabelValues labels);
  /// Puts each amount into its bucket of the histogram. The metric's name says whether the unit is
  /// seconds, bytes or weights.
  void record(Metric metric, LabelValues labels, double amount);
  void record(Metric metric, LabelValues labels, std::span<const double> amounts);

  /// Counts an update beyond the metric's limit of series (signalbox_metric_series_overflow_total).
  void count_overflow(Metric metric);

  /// Drops the series that have this value as their first label.
  void forget(Metric metric, absl::string_view first_label);

  /// Drops the one series with these labels.
  void forget_one(Metric metric, const LabelValues& labels);

  /// Every value of a label with this name.
  std::set<std::string> values_of_label(absl::string_view label) const;

  /// Drops the series of all metrics that have a label with this name and one of these values.
  void forget_all(absl::string_view label, const std::set<std::string>& values);

  /// The metrics that have series, in the order of kMetrics (names.hpp).
  std::vector<Family> collect() const;

 private:
  struct Value {
    double number = 0;
    Histogram histogram;
  };

  using Values = std::map<LabelValues, Value>;

  Values& values_of(Metric metric) { return values_[static_cast<std::size_t>(metric)]; }

  // The value of the series with these labels, or of the series "other" if the series is new and
  // the metric has kMaxSeries series already.
  Value& find_or_share(Metric metric, LabelValues labels);

  const LatencyScale scale_;
  mutable std::mutex mutex_;
  std::array<Values, kMetrics.size()> values_;
};

}  // namespace signalbox::metrics
