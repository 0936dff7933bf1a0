// SPDX-License-Identifier: Apache-2.0
//
// The rules of ejection. Comments beside the rows have the numbers, computed by hand.
#include "lb/tree/outlier_rules.hpp"

#include <limits>
#include <string>

#include <catch2/catch.hpp>

#include "messages/century.hpp"

namespace signalbox::lb::outlier_rules_test {
namespace {

using namespace std::chrono_literals;
using Places = std::vector<std::size_t>;
using SuccessRate = OutlierDetection::SuccessRate;
using FailurePercentage = OutlierDetection::FailurePercentage;

constexpr auto kByRate = DetectionMethod::kSuccessRate;
constexpr auto kByFailures = DetectionMethod::kFailurePercentage;
constexpr auto kEjected = DetectionOutcome::kEjected;
constexpr auto kSpared = DetectionOutcome::kEnforcementPercentage;
constexpr auto kOverflow = DetectionOutcome::kMaxEjectionOverflow;

/// Numbers of successes and failures for each endpoint.
std::vector<CallTally> tallies(const std::vector<std::pair<int, int>>& calls) {
  std::vector<CallTally> tallies;
  for (const auto& [successes, failures] : calls)
    tallies.push_back(
        {static_cast<std::uint64_t>(successes), static_cast<std::uint64_t>(failures), false});
  return tallies;
}

std::vector<CallTally> alike(std::size_t count, int successes, int failures) {
  return tallies(std::vector<std::pair<int, int>>(count, {successes, failures}));
}

std::vector<CallTally> operator+(std::vector<CallTally> left, const std::vector<CallTally>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

}  // namespace

TEST_CASE("outlier_rules: a success rate is judged by those of the others",
          "[lb][outlier_detection][A50]") {
  struct Row {
    const char* rule;
    std::vector<CallTally> calls;
    SuccessRate settings;  // stdev_factor, enforcement, minimum_hosts, request_volume
    Places outliers;
  };

  const auto row = GENERATE(values<Row>({
      // mean 0.8, deviation √((4·0.2² + 0.8²)/5) = 0.4, threshold 0.8 - 1.9·0.4 = 0.04
      {"one of five fails", alike(4, 100, 0) + alike(1, 0, 100), {}, {4}},
      // mean 0.81, deviation 0.38, threshold 0.81 - 0.722 = 0.088
      {"just below the threshold", alike(4, 100, 0) + alike(1, 5, 95), {}, {4}},
      // mean 0.6, deviation √(0.24) = 0.4899, threshold 0.6 - 0.9308 < 0
      {"two of five fail: no outliers, but a bad cluster",
       alike(3, 100, 0) + alike(2, 0, 100),
       {},
       {}},
      // the row above with stdev_factor 1: threshold 0.6 - 0.4899 = 0.1101
      {"unless the factor says so",
       alike(3, 100, 0) + alike(2, 0, 100),
       {1000, 100, 5, 100},
       {3, 4}},
      // mean 0.75, deviation 0.25, threshold 0.5
      {"on the threshold is not below it",
       alike(1, 100, 0) + alike(1, 50, 50),
       {1000, 100, 2, 100},
       {}},
      {"whatever is below it is, by a little",
       alike(1, 100, 0) + alike(1, 50, 50),
       {999, 100, 2, 100},
       {1}},
      {"all the same", alike(7, 30, 70), {}, {}},
      {"all well", alike(7, 100, 0), {}, {}},
      {"four are too few", alike(3, 100, 0) + alike(1, 0, 100), {1000, 100, 5, 100}, {}},
      // mean 0.75, deviation 0.4330, threshold 0.3170
      {"four are enough if they need not be more",
       alike(3, 100, 0) + alike(1, 0, 100),
       {1000, 100, 4, 100},
       {3}},
      {"who had too few calls is no host", alike(4, 100, 0) + alike(1, 0, 99), {}, {}},
      // mean and threshold as in the first row: endpoints with 99 calls do not count
      {"and changes no mean", alike(4, 100, 0) + alike(5, 0, 99) + alike(1, 0, 100), {}, {9}},
      {"who had no call has no rate", alike(9, 0, 0), {0, 100, 0, 0}, {}},
      {"nobody is there", {}, {0, 100, 0, 0}, {}},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(success_rate_outliers(row.settings, row.calls) == row.outliers);
  }
}

TEST_CASE("outlier_rules: a failure percentage is judged by itself",
          "[lb][outlier_detection][A50]") {
  struct Row {
    const char* rule;
    std::vector<CallTally> calls;
    FailurePercentage settings;  // threshold, enforcement, minimum_hosts, request_volume
    Places outliers;
  };

  const auto row = GENERATE(values<Row>({
      {"85 of 100 is not above 85 percent", alike(5, 15, 85), {85, 100, 5, 50}, {}},
      {"86 of 100 is", alike(4, 15, 85) + alike(1, 14, 86), {85, 100, 5, 50}, {4}},
      {"851 of 1000 is", alike(4, 50, 0) + alike(1, 149, 851), {85, 100, 5, 50}, {4}},
      {"any number of them", alike(5, 0, 50), {85, 100, 5, 50}, {0, 1, 2, 3, 4}},
      {"nothing is above 100 percent", alike(5, 0, 50), {100, 100, 5, 50}, {}},
      {"one failure is above 0", alike(4, 50, 0) + alike(1, 999, 1), {0, 100, 5, 50}, {4}},
      {"49 calls say nothing", alike(5, 0, 49), {85, 100, 5, 50}, {}},
      {"four endpoints are too few", alike(4, 0, 50), {85, 100, 5, 50}, {}},
      {"endpoints without calls are no hosts",
       alike(4, 0, 0) + alike(1, 0, 50),
       {85, 100, 5, 50},
       {}},
      {"endpoints with too few calls are no hosts",
       alike(4, 49, 0) + alike(1, 0, 50),
       {85, 100, 5, 50},
       {}},
      {"endpoints with just enough calls are hosts",
       alike(4, 50, 0) + alike(1, 0, 50),
       {85, 100, 5, 50},
       {4}},
      {"an endpoint without a call is no host where no call is asked for",
       alike(1, 0, 0) + alike(1, 0, 1),
       {85, 100, 2, 0},
       {}},
      {"no calls are no failures", alike(5, 0, 0), {0, 100, 0, 0}, {}},
  }));
  DYNAMIC_SECTION(row.rule) {
    CHECK(failure_percentage_outliers(row.settings, row.calls) == row.outliers);
  }
}

TEST_CASE("outlier_rules: counts of any size are compared exactly",
          "[lb][outlier_detection][A50]") {
  constexpr std::uint64_t kMany = 1'000'000'000'000'000;
  const std::vector<CallTally> calls = {{15 * kMany, 85 * kMany, false},
                                        {15 * kMany - 1, 85 * kMany + 1, false}};
  CHECK(failure_percentage_outliers({85, 100, 2, 50}, calls) == Places{1});
}

TEST_CASE("outlier_rules: one may always be ejected, more only below the percentage",
          "[lb][outlier_detection][A50]") {
  struct Row {
    std::size_t ejected;
    std::size_t endpoints;
    std::uint32_t percent;
    bool may;
  };

  const auto row = GENERATE(values<Row>({
      {0, 1, 10, true},
      {0, 100, 0, true},  // The first ejection is always allowed.
      {1, 100, 0, false},
      {1, 10, 10, false},  // 10 % are ejected.
      {1, 11, 10, true},   // 9.09 % are ejected.
      {2, 11, 10, false},  // 18.2 % are ejected.
      {9, 100, 10, true},
      {10, 100, 10, false},
      {99, 100, 100, true},
      {100, 100, 100, false},
      {1, 5'000'000'000, 1, true},
  }));
  CAPTURE(row.ejected, row.endpoints, row.percent);
  CHECK(may_eject(row.ejected, row.endpoints, row.percent) == row.may);
}

TEST_CASE("outlier_rules: an ejection lasts longer each time, up to a maximum",
          "[lb][outlier_detection][A50]") {
  struct Row {
    Duration base;
    Duration most;
    std::uint32_t multiplier;
    Duration expected;
  };

  const auto row = GENERATE(values<Row>({
      {30s, 300s, 1, 30s},
      {30s, 300s, 2, 60s},
      {30s, 300s, 10, 300s},
      {30s, 300s, 11, 300s},
      {30s, 100s, 3, 90s},
      {30s, 100s, 4, 100s},
      {30s, 10s, 1, 30s},  // The maximum is never less than the base.
      {30s, 10s, 2, 30s},
      {0s, 300s, 7, 0s},
      {0s, 0s, 7, 0s},
      {kCentury, kCentury, std::numeric_limits<std::uint32_t>::max(), kCentury},
      {1ns, kCentury, std::numeric_limits<std::uint32_t>::max(), 4'294'967'295ns},
  }));
  OutlierDetection settings;
  settings.base_ejection_time = row.base;
  settings.max_ejection_time = row.most;
  CAPTURE(row.multiplier);
  CHECK(ejection_time(settings, row.multiplier) == row.expected);
}

namespace {

using Detections = std::vector<Detection>;

/// All endpoints may be ejected. Both algorithms are on and enforced with a chance of 50 %.
OutlierDetection both() {
  OutlierDetection settings;
  settings.max_ejection_percent = 100;
  settings.success_rate = SuccessRate{1000, 50, 5, 100};
  settings.failure_percentage = FailurePercentage{85, 50, 5, 100};
  return settings;
}

/// Detects outliers with these draws, and checks that it uses all of them.
Detections detect(const OutlierDetection& settings,
                  const std::vector<CallTally>& calls,
                  const std::vector<std::uint64_t>& draws) {
  std::size_t drawn = 0;
  const auto detections = detect_outliers(settings, calls, [&] { return draws.at(drawn++); });
  CHECK(drawn == draws.size());
  return detections;
}

}  // namespace

TEST_CASE("outlier_rules: an outlier is ejected if its number is below the enforcement percentage",
          "[lb][outlier_detection][A50][A91]") {
  OutlierDetection settings = both();
  settings.failure_percentage.reset();
  const auto calls = alike(3, 100, 0) + alike(2, 0, 100);
  CHECK(detect(settings, calls, {49, 50}) ==
        Detections{{3, kByRate, kEjected}, {4, kByRate, kSpared}});
  settings.success_rate->enforcement_percent = 100;
  CHECK(detect(settings, calls, {99, 99}) ==
        Detections{{3, kByRate, kEjected}, {4, kByRate, kEjected}});
  settings.success_rate->enforcement_percent = 0;
  CHECK(detect(settings, calls, {0, 0}) ==
        Detections{{3, kByRate, kSpared}, {4, kByRate, kSpared}});
}

TEST_CASE("outlier_rules: the second algorithm judges those whom the first has not ejected",
          "[lb][outlier_detection][A50]") {
  const auto calls = alike(3, 100, 0) + alike(2, 0, 100);
  CHECK(detect(both(), calls, {0, 99, 0}) ==
        Detections{{3, kByRate, kEjected}, {4, kByRate, kSpared}, {4, kByFailures, kEjected}});
}

TEST_CASE("outlier_rules: without an algorithm there are no outliers",
          "[lb][outlier_detection][A50]") {
  CHECK(detect(OutlierDetection{}, alike(4, 100, 0) + alike(1, 0, 100), {}).empty());
}

TEST_CASE("outlier_rules: what is beyond max_ejection_percent is found, and stays",
          "[lb][outlier_detection][A50][A91]") {
  OutlierDetection settings = both();
  settings.max_ejection_percent = 40;
  settings.success_rate.reset();
  const auto calls = alike(2, 100, 0) + alike(3, 0, 100);
  CHECK(detect(settings, calls, {0, 0}) == Detections{{2, kByFailures, kEjected},
                                                      {3, kByFailures, kEjected},
                                                      {4, kByFailures, kOverflow}});
  // A detection that was not enforced does not count towards the limit.
  CHECK(detect(settings, calls, {0, 99, 0}) == Detections{{2, kByFailures, kEjected},
                                                          {3, kByFailures, kSpared},
                                                          {4, kByFailures, kEjected}});
}

TEST_CASE("outlier_rules: who is ejected already counts as such, and is not found again",
          "[lb][outlier_detection][A50]") {
  OutlierDetection settings = both();
  settings.max_ejection_percent = 40;
  auto calls = alike(2, 100, 0) + alike(3, 0, 100);
  calls[2].ejected = true;
  CHECK(detect(settings, calls, {0}) ==
        Detections{{3, kByFailures, kEjected}, {4, kByFailures, kOverflow}});
}

}  // namespace signalbox::lb::outlier_rules_test
