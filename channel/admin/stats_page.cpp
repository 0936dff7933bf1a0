// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/stats_page.hpp"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "re2/re2.h"

namespace signalbox::channel {

absl::StatusOr<std::string> stats_text(absl::string_view metrics, const std::string& filter) {
  if (filter.size() > kLongestFilter) {
    return absl::InvalidArgumentError(
        absl::StrCat("filter: expected at most ", kLongestFilter, " bytes, got ", filter.size()));
  }
  re2::RE2::Options options;
  options.set_max_mem(std::int64_t{1} << 20U);
  options.set_log_errors(false);
  const re2::RE2 wanted(filter, options);
  if (!wanted.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("filter: expected a regular expression: ", wanted.error()));
  }
  std::string out;
  for (const absl::string_view line : absl::StrSplit(metrics, '\n', absl::SkipEmpty())) {
    if (line.front() == '#') continue;
    const std::size_t space = line.rfind(' ');
    if (space == absl::string_view::npos) continue;
    const absl::string_view series = line.substr(0, space);
    if (!re2::RE2::PartialMatch({series.data(), series.size()}, wanted)) continue;
    absl::StrAppend(&out, series, ": ", line.substr(space + 1), "\n");
  }
  return out;
}

}  // namespace signalbox::channel
