// SPDX-License-Identifier: Apache-2.0
//
// page_assets — the script and the style of the HTML page, built in.
//
//   uplot/, report_page.js, report_page.css ─ CMake ─▶ [page_assets] ─▶ report_html
//
// uPlot has the MIT licence, which the script begins with.

#pragma once

namespace signalbox::tools {

const char* load_page_script();
const char*
load_page_script_sha256();  ///< SHA-256 in hexadecimal digits. The page allows only this script.
const char* load_page_style();

}  // namespace signalbox::tools
