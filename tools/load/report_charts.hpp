// SPDX-License-Identifier: Apache-2.0
//
// report_charts — the series of the HTML page's charts.
//
//   LoadReport ─▶ [load_charts_json] ─▶ JSON in the page ─▶ report_page.js ─▶ uPlot
//
// Each column has one value for each point in time. Rates are in calls a second, times in seconds,
// and latencies in milliseconds. A latency is null if no call of its point ended OK.

#pragma once

#include <cstddef>

#include <nlohmann/json.hpp>

#include "tools/load/report.hpp"

namespace signalbox::tools {

/// The number of bins in one point: charts have at most 1,200 points.
std::size_t bins_in_point(const LoadReport& report);

nlohmann::ordered_json load_charts_json(const LoadReport& report);

}  // namespace signalbox::tools
