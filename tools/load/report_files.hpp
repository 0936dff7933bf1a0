// SPDX-License-Identifier: Apache-2.0
//
// report_files — a LoadReport in the files that the options name.
//
//   load, load merge: LoadReport ─▶ [write_report_files] ─▶ --html, --json, --junit, --hdr
//   demo: LoadReport ─────────────▶ [write_report_files] ─▶ --html

#pragma once

#include <string>

#include "absl/status/status.h"

#include "tools/load/report.hpp"

namespace signalbox::tools {

/// Names of files; empty: the option was not given.
struct ReportFiles {
  std::string html;
  std::string json;
  std::string junit;
  std::string hdr;
};

/// Checks, before a run, that each file can be written, and creates it if it does not exist.
/// INVALID_ARGUMENT names the option.
absl::Status check_report_files(const ReportFiles& files);

/// Writes all files that `files` names. INTERNAL: some file could not be written completely; the
/// other files are complete.
absl::Status write_report_files(const ReportFiles& files, const LoadReport& report);

}  // namespace signalbox::tools
