// SPDX-License-Identifier: Apache-2.0
//
// merge — the reports of several machines as one.
//
//   a.json, b.json ─▶ NamedReport ─▶ [merge_load_reports] ─▶ LoadReport ─▶ HTML, JSON, …
//
// Exact: histograms, bins and counts are added. Percentiles, baselines, recoveries and thresholds
// are computed again from the sums.
// Not exact: reports have only percentiles of the lateness, so the longest are taken. Each report
// has only its 20 most frequent error messages.
//
// If there is a moment at which all runs were under way, the runs are aligned by their clocks, in
// steps of a bin. Else they count as repetitions, and all begin at 0. Faults of the same name are
// one fault: it has the earliest time at which it was done, and the earliest first answer of the
// next priority. A run that lacks a fault adds no lost calls to it, and a note says so.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "tools/load/report.hpp"

namespace signalbox::tools {

struct NamedReport {
  std::string name;  ///< The file's name, for errors and notes.
  LoadReport report;
};

/// INVALID_ARGUMENT: there is no report, the reports have different targets, methods, kinds of
/// method or sides, or one of their thresholds cannot be judged.
absl::StatusOr<LoadReport> merge_load_reports(const std::vector<NamedReport>& reports);

}  // namespace signalbox::tools
