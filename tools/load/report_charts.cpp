// SPDX-License-Identifier: Apache-2.0
#include "tools/load/report_charts.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tools/load/bins.hpp"
#include "tools/load/call_code.hpp"
#include "tools/load/report_words.hpp"

namespace signalbox::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 1200;

OrderedJson in_ms(const LoadBin& bin, std::uint64_t ns) {
  return bin.latencies.empty() ? OrderedJson(nullptr) : OrderedJson(static_cast<double>(ns) / 1e6);
}

std::uint64_t calls_to(const LoadBin& bin, std::uint32_t place) {
  std::uint64_t calls = 0;
  for (const LoadShare& share : bin.shares)
    calls += share.place == place ? share.ok + share.failed : 0;
  return calls;
}

OrderedJson places_json(const LoadSide& side, const std::vector<LoadBin>& points) {
  OrderedJson places = OrderedJson::array();
  for (std::size_t i = 0; i < side.places.size(); ++i) {
    std::uint64_t all = 0;
    OrderedJson calls = OrderedJson::array();
    for (const LoadBin& point : points) {
      const std::uint64_t count = calls_to(point, static_cast<std::uint32_t>(i));
      all += count;
      calls.push_back(count);
    }
    if (all > 0) places.push_back({{"name", place_text(side.places[i])}, {"calls", calls}});
  }
  return places;
}

// The seconds that a point has of the run: fewer than `width` when the run ended within it.
double seconds_of(std::size_t point, double width, double ran_s) {
  const double left = ran_s - static_cast<double>(point) * width;
  return left > 0 ? std::min(left, width) : width;
}

OrderedJson codes_json(const LoadSide& side,
                       const std::vector<LoadBin>& points,
                       double width,
                       double ran_s) {
  OrderedJson codes = OrderedJson::array();
  for (const auto& [code, count] : side.codes) {
    if (!is_failure(code) || count == 0) continue;
    OrderedJson rates = OrderedJson::array();
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto found = points[i].codes.find(code);
      rates.push_back(found == points[i].codes.end()
                          ? 0.0
                          : static_cast<double>(found->second) / seconds_of(i, width, ran_s));
    }
    codes.push_back({{"name", code_text(code)}, {"rates", std::move(rates)}});
  }
  return codes;
}

OrderedJson side_json(const LoadSide& side, std::size_t together, double ran_s) {
  const std::vector<LoadBin> points = wider_bins(side.bins, together);
  const double width = static_cast<double>(together) * static_cast<double>(kLoadBinNs) /
                       static_cast<double>(kSecondNs);
  OrderedJson times = OrderedJson::array();
  OrderedJson due = OrderedJson::array();
  OrderedJson ok = OrderedJson::array();
  OrderedJson p50 = OrderedJson::array();
  OrderedJson p99 = OrderedJson::array();
  OrderedJson most = OrderedJson::array();
  for (std::size_t i = 0; i < points.size(); ++i) {
    const LoadBin& point = points[i];
    std::uint64_t answered = 0;
    for (const auto& [code, count] : point.codes)
      if (!is_failure(code)) answered += count;
    times.push_back(static_cast<double>(i) * width);
    const double seconds = seconds_of(i, width, ran_s);
    due.push_back(static_cast<double>(point.scheduled) / seconds);
    ok.push_back(static_cast<double>(answered) / seconds);
    p50.push_back(in_ms(point, point.p50_ns));
    p99.push_back(in_ms(point, point.p99_ns));
    most.push_back(in_ms(point, point.max_ns));
  }
  return {{"name", side.name},
          {"times", std::move(times)},
          {"due", std::move(due)},
          {"ok", std::move(ok)},
          {"codes", codes_json(side, points, width, ran_s)},
          {"p50", std::move(p50)},
          {"p99", std::move(p99)},
          {"max", std::move(most)},
          {"places", places_json(side, points)}};
}

}  // namespace

std::size_t bins_in_point(const LoadReport& report) {
  std::size_t most = 0;
  for (const LoadSide& side : report.sides)
    most = std::max(most, side.bins.size());
  return std::max<std::size_t>(1, (most + kMostPoints - 1) / kMostPoints);
}

nlohmann::ordered_json load_charts_json(const LoadReport& report) {
  OrderedJson faults = OrderedJson::array();
  for (const LoadFault& fault : report.faults)
    faults.push_back({{"at", static_cast<double>(fault.at_ns) / static_cast<double>(kSecondNs)},
                      {"name", fault.name},
                      {"is_fault", fault.is_fault}});
  OrderedJson sides = OrderedJson::array();
  for (const LoadSide& side : report.sides)
    sides.push_back(side_json(side, bins_in_point(report), report.ran_s));
  return {{"ran_s", report.ran_s}, {"faults", std::move(faults)}, {"sides", std::move(sides)}};
}

}  // namespace signalbox::tools
