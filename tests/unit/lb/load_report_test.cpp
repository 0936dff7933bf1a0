// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/load_report.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/property.hpp"

namespace signalbox::lb {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U)
    bytes.push_back(static_cast<char>(value | 0x80U));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string tag(std::uint64_t field, std::uint64_t type) {
  return varint(field << 3U | type);
}

std::string number(std::uint64_t field, double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  std::string bytes = tag(field, 1);
  for (unsigned at = 0; at < 8; ++at)
    bytes.push_back(static_cast<char>(bits >> (8 * at)));
  return bytes;
}

std::string text(std::uint64_t field, const std::string& content) {
  return tag(field, 2) + varint(content.size()) + content;
}

std::string entry(std::uint64_t map, const std::string& name, double value) {
  return text(map, text(1, name) + number(2, value));
}

}  // namespace

TEST_CASE("load_report: reads every value of a report", "[lb][orca][A51]") {
  const std::string bytes = number(1, 1.5) + number(2, 0.25) + tag(3, 0) + varint(300) +
                            entry(4, "cost", 7) + entry(5, "disk", 0.5) + number(6, 123.5) +
                            number(7, 2) + entry(8, "queue", 11) + number(9, 0.75);
  const ReceivedLoadReport received(bytes);
  REQUIRE(received.report() != nullptr);
  const LoadReport& report = *received.report();
  CHECK(received.result() == LoadReportResult::kTaken);
  CHECK(report.cpu_utilization == 1.5);
  CHECK(report.mem_utilization == 0.25);
  CHECK(report.qps == 123.5);
  CHECK(report.eps == 2);
  CHECK(report.application_utilization == 0.75);
  const std::vector<LoadMetric> metrics(report.metrics.begin(), report.metrics.end());
  CHECK(metrics == std::vector<LoadMetric>{{LoadMetric::Map::kRequestCost, "cost", 7},
                                           {LoadMetric::Map::kUtilization, "disk", 0.5},
                                           {LoadMetric::Map::kNamedMetrics, "queue", 11}});
}

TEST_CASE("load_report: the older field rps counts where rps_fractional is not set",
          "[lb][orca][A51]") {
  const std::string bytes = tag(3, 0) + varint(300);
  CHECK(ReceivedLoadReport(bytes).report()->qps == 300);
  // The largest number, in ten bytes.
  const std::string largest = tag(3, 0) + varint(UINT64_MAX);
  REQUIRE(ReceivedLoadReport(largest).report() != nullptr);
  CHECK(ReceivedLoadReport(largest).report()->qps == 0x1.0p64);
}

TEST_CASE("load_report: of equal keys of one map the last counts, as in protobuf",
          "[lb][orca][A51]") {
  const std::string bytes = entry(8, "queue", 1) + entry(8, "disk", 2) + entry(4, "queue", 3) +
                            entry(8, "queue", 4) + entry(8, "disk", kNan);
  const ReceivedLoadReport received(bytes);
  REQUIRE(received.report() != nullptr);
  const auto& span = received.report()->metrics;
  const std::vector<LoadMetric> metrics(span.begin(), span.end());
  CHECK(metrics == std::vector<LoadMetric>{{LoadMetric::Map::kNamedMetrics, "queue", 4},
                                           {LoadMetric::Map::kNamedMetrics, "disk", 2},
                                           {LoadMetric::Map::kRequestCost, "queue", 3}});
}

TEST_CASE("load_report: an entry of a map without its value has the value 0", "[lb][orca][A51]") {
  const std::string bytes = text(8, text(1, "queue")) + text(8, number(2, 3));
  const ReceivedLoadReport received(bytes);
  CHECK(received.result() == LoadReportResult::kTaken);
  REQUIRE(received.report() != nullptr);
  const auto& span = received.report()->metrics;
  const std::vector<LoadMetric> metrics(span.begin(), span.end());
  CHECK(metrics == std::vector<LoadMetric>{{LoadMetric::Map::kNamedMetrics, "queue", 0},
                                           {LoadMetric::Map::kNamedMetrics, "", 3}});
}

TEST_CASE("load_report: an empty report is valid", "[lb][orca][A51]") {
  const ReceivedLoadReport received("");
  REQUIRE(received.report() != nullptr);
  CHECK(received.report()->qps == 0);
  CHECK(received.report()->metrics.empty());
}

TEST_CASE("load_report: values that no report may have are left out", "[lb][orca][A51]") {
  const double bad = GENERATE(values<double>({kNan, kInfinite, -kInfinite, -1.0}));
  for (const std::uint64_t field : {1U, 2U, 6U, 7U, 9U}) {
    const std::string bytes = number(field, bad) + number(field == 1 ? 9 : 1, 0.5);
    const ReceivedLoadReport received(bytes);
    REQUIRE(received.report() != nullptr);
    CHECK(received.result() == LoadReportResult::kPartly);
    CHECK(received.report()->cpu_utilization + received.report()->application_utilization == 0.5);
  }
  for (const std::uint64_t map : {4U, 5U, 8U}) {
    const std::string bytes = entry(map, "a", bad) + entry(map, "b", 1);
    const ReceivedLoadReport received(bytes);
    REQUIRE(received.report() != nullptr);
    CHECK(received.result() == LoadReportResult::kPartly);
    REQUIRE(received.report()->metrics.size() == 1);
    CHECK(received.report()->metrics[0].name == "b");
  }
  for (const std::string& above_one : {number(2, 1.01), entry(5, "disk", 1.01)})
    CHECK(ReceivedLoadReport(above_one).result() == LoadReportResult::kPartly);
}

TEST_CASE("load_report: fields of a wrong wire type are left out", "[lb][orca][A51]") {
  for (const std::string& bad : {tag(1, 0) + varint(1),
                                 text(6, "x"),
                                 number(3, 1),
                                 number(8, 2),
                                 text(8, text(1, "a") + tag(2, 0) + varint(4))}) {
    const std::string bytes = bad + number(9, 0.5);
    const ReceivedLoadReport received(bytes);
    REQUIRE(received.report() != nullptr);
    CHECK(received.result() == LoadReportResult::kPartly);
    CHECK(received.report()->application_utilization == 0.5);
    CHECK(received.report()->cpu_utilization == 0);
    CHECK(received.report()->qps == 0);
    CHECK(received.report()->metrics.empty());
  }
}

TEST_CASE("load_report: unknown fields are passed over", "[lb][orca][A51]") {
  const std::string bytes = text(10, "future") + number(1'000, 1) + tag(11, 0) + varint(1) +
                            tag(12, 5) + "abcd" + number(1, 0.5);
  const ReceivedLoadReport received(bytes);
  REQUIRE(received.report() != nullptr);
  CHECK(received.result() == LoadReportResult::kTaken);
  CHECK(received.report()->cpu_utilization == 0.5);
}

TEST_CASE("load_report: reports that are too large or malformed are ignored", "[lb][orca][A51]") {
  std::string entries;
  for (int count = 0; count < 128; ++count)
    entries += entry(8, std::to_string(count), 1);
  CHECK(ReceivedLoadReport(entries).report()->metrics.size() == 128);
  const auto [what, bytes] = GENERATE_COPY(table<std::string, std::string>({
      {"an entry too many", entries + entry(4, "b", 1)},
      {"a byte too many", number(1, 0.5) + text(10, std::string(4'096 - 9 - 3 + 1, 'x'))},
      {"cut short", number(1, 0.5).substr(0, 8)},
      {"a text beyond the end", tag(8, 2) + varint(100) + "short"},
      {"a malformed entry", text(8, tag(1, 2) + varint(9))},
      {"an endless varint", tag(3, 0) + std::string(11, '\xff')},
      {"a group", tag(1, 3) + tag(1, 4)},
      {"field 0", tag(0, 0) + varint(1)},
  }));
  CAPTURE(what);
  const ReceivedLoadReport received(bytes);
  CHECK(received.report() == nullptr);
}

TEST_CASE("load_report: a report of exactly 4 KiB is read", "[lb][orca][A51]") {
  const std::string bytes = number(1, 0.5) + text(10, std::string(4'096 - 9 - 3, 'x'));
  REQUIRE(bytes.size() == 4'096);
  CHECK(ReceivedLoadReport(bytes).report() != nullptr);
}

TEST_CASE("load_report: whatever the bytes, values are finite and not negative",
          "[lb][orca][property]") {
  CHECK(test::holds("bounded", 20'000, [](const std::vector<std::uint8_t>& any) {
    const std::string bytes(any.begin(), any.end());
    const ReceivedLoadReport received(bytes);
    if (received.report() == nullptr) return;
    const LoadReport& report = *received.report();
    for (const double value : {report.cpu_utilization,
                               report.mem_utilization,
                               report.application_utilization,
                               report.qps,
                               report.eps})
      RC_ASSERT(std::isfinite(value) && value >= 0);
    for (const LoadMetric& metric : report.metrics)
      RC_ASSERT(std::isfinite(metric.value) && metric.value >= 0);
  }));
}

TEST_CASE("load_report: a report counts as taken, taken in part, or refused", "[lb][orca][A51]") {
  CHECK(ReceivedLoadReport(number(1, 0.5)).result() == LoadReportResult::kTaken);
  CHECK(ReceivedLoadReport(number(1, -1)).result() == LoadReportResult::kPartly);
  CHECK(ReceivedLoadReport(std::string(5000, 'x')).result() == LoadReportResult::kRefused);
}

TEST_CASE("load_report: the request of a stream has the period", "[lb][orca][A51]") {
  using namespace std::chrono_literals;
  CHECK(load_report_request(10s) == text(1, tag(1, 0) + varint(10)));
  CHECK(load_report_request(1500ms) ==
        text(1, tag(1, 0) + varint(1) + tag(2, 0) + varint(500'000'000)));
  CHECK(load_report_request(100ms) == text(1, tag(2, 0) + varint(100'000'000)));
  CHECK(load_report_request(0s) == text(1, ""));
}

}  // namespace signalbox::lb
