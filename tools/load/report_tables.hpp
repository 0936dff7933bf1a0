// SPDX-License-Identifier: Apache-2.0
//
// report_tables — the numbers of a LoadReport as HTML tables, which need no script.
//
//   LoadReport ─▶ [*_table] ─▶ report_html
//
// A comparison has the sides next to each other, or in rows one below the other.

#pragma once

#include <cstdint>
#include <string>

#include "tools/load/report.hpp"

namespace signalbox::tools {

/// The acts of the script. The first column has the number by which the charts show an act.
std::string faults_table(const LoadReport& report);
std::string thresholds_table(const LoadReport& report);
/// Percentiles of the whole run, from due, from sent and of a closed loop.
std::string latency_table(const LoadReport& report);
/// Calls by status code, and the messages of failures.
std::string failures_table(const LoadReport& report);
std::string endpoints_table(const LoadReport& report);
/// At most 60 rows, of whole seconds.
std::string time_table(const LoadReport& report);
std::string validity_table(const LoadReport& report);
std::string configuration_table(const LoadReport& report);

/// "12.3 %"; "–" if `all` is 0.
std::string share_text(std::uint64_t part, std::uint64_t all);

}  // namespace signalbox::tools
