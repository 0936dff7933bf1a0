// SPDX-License-Identifier: Apache-2.0
//
// signalbox load merge. Reads the reports of several machines, and writes them as one.
//
//   files ─▶ read_load_report ─▶ merge_load_reports ─▶ table, files
#include <cstddef>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "actors/io/watched_file.hpp"
#include "tools/commands.hpp"
#include "tools/load/merge.hpp"
#include "tools/load/report_json.hpp"
#include "tools/load/report_text.hpp"

namespace signalbox::tools {
namespace {

// The longest report that is read, in bytes.
constexpr std::size_t kMostReportBytes = std::size_t{2} << 30U;

absl::StatusOr<LoadReport> merged(const std::vector<std::string>& names) {
  std::vector<NamedReport> reports;
  for (const std::string& name : names) {
    const auto text = actors::read_file(name, kMostReportBytes);
    if (!text.ok()) return text.status();
    auto report = read_load_report(*text);
    if (!report.ok())
      return absl::InvalidArgumentError(absl::StrCat(name, ": ", report.status().message()));
    reports.push_back({name, *std::move(report)});
  }
  return merge_load_reports(reports);
}

}  // namespace

int run_load_merge(const LoadMergeOptions& options) {
  const auto fail = [](const absl::Status& status) {
    say("load merge", status.message());
    return kExitUsage;
  };
  const auto report = merged(options.reports);
  if (!report.ok()) return fail(report.status());
  std::cout << load_report_text(*report) << std::flush;
  for (const std::string& note : report->notes)
    std::cout << "note: " << note << "\n";
  if (auto status = write_report_files(options.files, *report); !status.ok()) return fail(status);
  return report->exit_status;
}

}  // namespace signalbox::tools
