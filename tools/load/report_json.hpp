// SPDX-License-Identifier: Apache-2.0
//
// report_json — a LoadReport as JSON, and back. docs/load.md has the schema.
//
//   LoadReport ─▶ [load_report_json] ─▶ --json FILE
//   JSON text ─▶ [read_load_report] ─▶ LoadReport, for `load merge`
//   LoadSide ◀─▶ JSON: how a generator's process hands its side over
//
// The members have the names of the structs' fields. Histograms have their buckets, so reading a
// report that was written gives an equal one. Only bytes of a status message that are not UTF-8 are
// lost: a file has U+FFFD instead. Members that are not known are ignored. An optional without a
// value is null.

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <nlohmann/json.hpp>

#include "tools/load/report.hpp"

namespace signalbox::tools {

nlohmann::ordered_json load_report_json(const LoadReport& report);
nlohmann::ordered_json load_side_json(const LoadSide& side);

/// INVALID_ARGUMENT: the text is no report, or has another version than kLoadReportVersion. The
/// error names a missing member.
absl::StatusOr<LoadReport> read_load_report(absl::string_view text);
absl::StatusOr<LoadSide> read_load_side(absl::string_view text);

}  // namespace signalbox::tools
