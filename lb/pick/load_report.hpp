// SPDX-License-Identifier: Apache-2.0
//
// load_report — reads the load reports that an endpoint sends (ORCA, gRFC A51).
//
//   a message of its stream: an OrcaLoadReport ─▶ [ReceivedLoadReport] ─▶ LoadReport
//
// An endpoint sends these bytes as often as it likes. So reading them allocates nothing, and has
// limits: at most 4 KiB, and at most 128 entries in all maps together. A report that exceeds a
// limit or is malformed is ignored as a whole. Single values are ignored if they are NaN, infinite
// or negative, if mem_utilization or an entry of `utilization` is above 1, or if the field has the
// wrong wire type. Unknown fields are skipped.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "messages/counting/call_stats.hpp"
#include "messages/ids.hpp"
#include "messages/load_report.hpp"

namespace signalbox::lb {

/// The request of a stream of reports: an OrcaLoadReportRequest. `period` 0: as often as the
/// endpoint allows.
std::string load_report_request(Duration period);

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

  /// How the metrics count the report: kPartly if single values were ignored, such as NaN (see the
  /// head of this file).
  LoadReportResult result() const {
    if (!is_valid_) return LoadReportResult::kRefused;
    return ignores_some_ ? LoadReportResult::kPartly : LoadReportResult::kTaken;
  }

 private:
  bool read(absl::string_view bytes);
  void take_value(std::uint64_t field, double value);
  bool take_entry(LoadMetric::Map map, absl::string_view entry);

  bool is_valid_ = false;
  bool ignores_some_ = false;
  std::size_t entries_ = 0;
  LoadReport report_;
  std::array<LoadMetric, kMostEntries> metrics_;  // Only the first report_.metrics.size() are set.
};

}  // namespace signalbox::lb
