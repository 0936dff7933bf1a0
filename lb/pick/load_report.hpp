// SPDX-License-Identifier: Apache-2.0
//
// load_report — reads the load report that an endpoint sends with a response (ORCA, gRFC A51).
//
//   trailer endpoint-load-metrics-bin: an OrcaLoadReport ─▶ [ReceivedLoadReport] ─▶ LoadReport
//
// The bytes come from an endpoint, with every response, so reading them has limits and allocates
// nothing: at most 4 KiB, at most 128 entries in all maps together. A report that is larger, or
// malformed, is ignored as a whole. A value that is NaN, infinite or negative is left out. So is a
// mem_utilization or a utilization above 1, and a field of a wrong wire type. Unknown fields are
// passed over.

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

  // The report points into this object.
  ReceivedLoadReport(const ReceivedLoadReport&) = delete;
  ReceivedLoadReport& operator=(const ReceivedLoadReport&) = delete;

  /// Null: the report is too large or malformed.
  const LoadReport* report() const { return is_valid_ ? &report_ : nullptr; }

  /// The number of values that were left out.
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
