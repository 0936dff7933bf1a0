// SPDX-License-Identifier: Apache-2.0
//
// report_text — a LoadReport as a table, and the line of a second.
//
//   LoadReport ─▶ [load_report_text] ─▶ stdout
//   LoadSecond of each side ─▶ [load_second_text] ─▶ stdout, once a second

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/load/recorder.hpp"
#include "tools/load/report.hpp"

namespace signalbox::tools {

std::string load_report_text(const LoadReport& report);

/// `second`: its number; 1 is the first of the measured part. `sides`: names with what they did.
/// `acts`: names of the acts that were done in it.
std::string load_second_text(std::int64_t second,
                             const std::vector<std::pair<std::string, LoadSecond>>& sides,
                             const std::vector<std::string>& acts);

}  // namespace signalbox::tools
