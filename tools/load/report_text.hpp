// SPDX-License-Identifier: Apache-2.0
//
// report_text — a LoadReport as a table, and the line of a second.
//
//   LoadReport ─▶ [load_report_text] ─▶ stdout
//   LoadSecond of each side ─▶ [load_second_text] ─▶ stderr, once a second

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/load/recorder.hpp"
#include "tools/load/report.hpp"

namespace signalbox::tools {

std::string load_report_text(const LoadReport& report);

/// The line of one second. `second`: its number, from 1 within the measured part. `sides`: the name
/// of each side, with its figures. `acts`: the names of the acts that began in that second.
std::string load_second_text(std::int64_t second,
                             const std::vector<std::pair<std::string, LoadSecond>>& sides,
                             const std::vector<std::string>& acts);

}  // namespace signalbox::tools
