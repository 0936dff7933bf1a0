// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_files.hpp"

#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include <nlohmann/json.hpp>

#include "tools/load/hdr_log.hpp"
#include "tools/load/report_html.hpp"
#include "tools/load/report_json.hpp"
#include "tools/load/report_junit.hpp"

namespace signalbox::tools {
namespace {

std::string json_text(const LoadReport& report) {
  // Bytes of a status message that are no UTF-8 become U+FFFD.
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  return absl::StrCat(load_report_json(report).dump(1, ' ', false, replace), "\n");
}

// A file that the report is written to.
struct Output {
  absl::string_view option;
  std::string path;  // Empty: the option was not given.
  std::string (*render)(const LoadReport&);
};

std::vector<Output> outputs_of(const ReportFiles& files) {
  std::vector<Output> outputs{{"--html", files.html, load_report_html},
                              {"--json", files.json, json_text},
                              {"--junit", files.junit, load_report_junit},
                              {"--hdr", files.hdr, hdr_log}};
  std::erase_if(outputs, [](const Output& output) { return output.path.empty(); });
  return outputs;
}

}  // namespace

absl::Status check_report_files(const ReportFiles& files) {
  for (const Output& output : outputs_of(files)) {
    const std::ofstream file(output.path, std::ios::app);
    if (!file)
      return absl::InvalidArgumentError(
          absl::StrCat(output.option, ": cannot write ", output.path));
  }
  return absl::OkStatus();
}

absl::Status write_report_files(const ReportFiles& files, const LoadReport& report) {
  std::vector<std::string> errors;
  for (const Output& output : outputs_of(files)) {
    std::ofstream file(output.path, std::ios::binary | std::ios::trunc);
    file << output.render(report) << std::flush;
    if (!file) errors.push_back(absl::StrCat("cannot write ", output.path, "; is the disk full?"));
  }
  return errors.empty() ? absl::OkStatus() : absl::InternalError(absl::StrJoin(errors, "; "));
}

}  // namespace signalbox::tools
