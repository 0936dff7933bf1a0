// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_charts.hpp"

#include <catch2/catch.hpp>

namespace signalbox::tools {

TEST_CASE("report_charts: the rate of a last, shorter bin is by its own length", "[load][html]") {
  LoadSide side{.name = "signalbox", .codes = {{0, 12}, {14, 3}}};
  side.bins.push_back({.scheduled = 10, .codes = {{0, 8}, {14, 2}}});
  side.bins.push_back({.scheduled = 5, .codes = {{0, 4}, {14, 1}}});
  LoadReport report;
  report.ran_s = 0.15;
  report.sides.push_back(side);
  const auto shown = load_charts_json(report)["sides"][0];
  CHECK(shown["due"][0].get<double>() == Approx(100));
  CHECK(shown["due"][1].get<double>() == Approx(100));
  CHECK(shown["ok"][1].get<double>() == Approx(80));
  CHECK(shown["codes"][0]["rates"][1].get<double>() == Approx(20));
}

}  // namespace signalbox::tools
