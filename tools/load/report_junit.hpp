// SPDX-License-Identifier: Apache-2.0
//
// report_junit — a LoadReport for CI: --junit FILE.
//
//   LoadReport ─▶ [load_report_junit] ─▶ XML: a case for each threshold, and one for the validity
//
// The suite's properties are the figures of each side; times are nanoseconds.

#pragma once

#include <string>

#include "tools/load/report.hpp"

namespace signalbox::tools {

std::string load_report_junit(const LoadReport& report);

}  // namespace signalbox::tools
