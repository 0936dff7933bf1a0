// SPDX-License-Identifier: Apache-2.0
//
// A load report as an HTML page: one file, which loads nothing. --html FILE.
//
//   LoadReport ─▶ [load_report_html] ─▶ a file for any browser, light and dark, and for paper
//
// The page begins with the verdict and three numbers. Charts need the page's own script, which is
// the only one that the page's policy allows. The tables need no script. Texts of the report are
// escaped.

#pragma once

#include <string>

#include "tools/load/report.hpp"

namespace signalbox::tools {

std::string load_report_html(const LoadReport& report);

}  // namespace signalbox::tools
