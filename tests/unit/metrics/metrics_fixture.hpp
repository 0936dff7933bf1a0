// SPDX-License-Identifier: Apache-2.0
//
// Reads metrics in a test: the value of one series, by the metric and the labels.

#pragma once

#include <optional>
#include <string>

#include "metrics/instruments.hpp"

namespace signalbox::testing {

/// `labels` may omit labels at its end; an omitted label is empty. nullopt: no such series exists.
inline std::optional<metrics::Series> series(const metrics::Instruments& instruments,
                                             metrics::Metric metric,
                                             metrics::LabelValues labels) {
  labels.resize(metrics::row_of(metric).label_count());
  for (const metrics::Family& family : instruments.collect()) {
    if (family.row->metric != metric) continue;
    for (const metrics::Series& one : family.series) {
      if (one.labels == labels) return one;
    }
  }
  return std::nullopt;
}

inline std::optional<double> value(const metrics::Instruments& instruments,
                                   metrics::Metric metric,
                                   const metrics::LabelValues& labels) {
  const auto found = series(instruments, metric, labels);
  return found ? std::optional(found->value) : std::nullopt;
}

inline std::size_t series_count(const metrics::Instruments& instruments, metrics::Metric metric) {
  for (const metrics::Family& family : instruments.collect()) {
    if (family.row->metric == metric) return family.series.size();
  }
  return 0;
}

/// A gate with the limit and the state that the test gives it.
class FakeGate final : public CallGate {
 public:
  FakeGate(std::uint32_t limit, bool is_full) : limit_(limit), is_full_(is_full) {}

  bool enter() const noexcept override { return !is_full_; }

  void ended(const CallEnd& /*end*/) const noexcept override {}

  absl::Status refuse() const override { return absl::UnavailableError("full"); }

  std::uint32_t limit() const override { return limit_; }

  bool is_full() const override { return is_full_; }

 private:
  const std::uint32_t limit_;
  const bool is_full_;
};

}  // namespace signalbox::testing
