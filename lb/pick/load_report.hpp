// SPDX-License-Identifier: Apache-2.0
//
// load_report — reads the load report that an endpoint sends with a response (ORCA, gRFC A51).
//
//   trailer endpoint-load-metrics-bin: an OrcaLoadReport ─▶ [ReceivedLoadReport] ─▶ LoadReport
//
// An endpoint sends these bytes with every response. So reading them allocates nothing, and has
// limits: at most 4 KiB, and at most 128 entries in all maps together. A report that exceeds a
// limit or is malformed is ignored as a whole. Single values are ignored if they are NaN, infinite
// or negative, if a mem_utilization or a utilization is above 1, or if the field has the wrong wire
// type. Unknown fields are skipped.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

#include "messages/load_report.hpp"

namespace signalbox::lb {

/// The trailer's name.
inline constexpr absl::string_view kLoadReportTrailer = "endpoint-load-metrics-bin";

class ReceivedLoadReport {
 public:
  static constexpr std::size_t kMostBytes = 4096;
  static constexpr std::size_t kMostEntries = 128;

  /// `bytes` must outlive this object: names are views into it.
  explicit ReceivedLoadReport(absl::string_view bytes);

  // Not copyable: report_ has views into metrics_.
  ReceivedLoadReport(const ReceivedLoadReport&) = delete;
  ReceivedLoadReport& operator=(const ReceivedLoadReport&) = delete;

  /// Null: the report is too large or malformed.
  const LoadReport* report() const { return is_valid_ ? &report_ : nullptr; }

  /// How many single values of the report were ignored, such as NaN (see the head of this file).
  std::size_t ignored() const { return ignored_; }

 private:
  bool read(absl::string_view bytes);
  void take_value(std::uint64_t field, double value);
  bool take_entry(LoadMetric::Map map, absl::string_view entry);

  bool is_valid_ = false;
  std::size_t ignored_ = 0;
  std::size_t entries_ = 0;
  LoadReport report_;
  std::array<LoadMetric, kMostEntries> metrics_;  // Only the first report_.metrics.size() are set.
};

}  // namespace signalbox::lb
