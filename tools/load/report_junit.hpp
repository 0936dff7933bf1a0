// SPDX-License-Identifier: Apache-2.0
//
// report_junit — a LoadReport for CI: --junit FILE.
//
//   LoadReport ─▶ [load_report_junit] ─▶ XML: test cases
//
// There is a case for the validity of each side, one that fails if a signal cut the run, one for
// each act that was not done, and one for each threshold.
// The suite's properties are the figures of each side; times are nanoseconds.

#pragma once

#include <string>

#include "tools/load/report.hpp"

namespace signalbox::tools {

std::string load_report_junit(const LoadReport& report);

}  // namespace signalbox::tools
