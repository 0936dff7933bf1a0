// SPDX-License-Identifier: Apache-2.0
#include "metrics/names.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

namespace signalbox::metrics {
namespace {

TEST_CASE("names: each metric has a name of its own, in Prometheus' customs", "[metrics][names]") {
  std::set<std::string> names;
  for (const MetricRow& row : kMetrics) {
    CAPTURE(std::string(row.name));
    CHECK(names.insert(std::string(row.name)).second);
    // Client libraries of Prometheus export the metrics of their process as process_….
    const bool is_of_process =
        row.metric >= Metric::kProcessCpu && row.metric <= Metric::kProcessStart;
    CHECK(absl::StartsWith(row.name, is_of_process ? "process_" : "signalbox_"));
    CHECK(absl::EndsWith(row.name, "_total") == (row.kind == MetricKind::kCounter));
    if (row.kind == MetricKind::kHistogram) {
      const bool is_size = row.buckets == Buckets::kSize;
      const bool is_weight = row.buckets == Buckets::kWeight;
      CHECK(absl::EndsWith(row.name, is_size ? "_bytes" : is_weight ? "_weights" : "_seconds"));
    }
    CHECK(absl::EndsWith(row.help, "."));
  }
}

TEST_CASE("names: labels are given from the front", "[metrics][names]") {
  for (const MetricRow& row : kMetrics) {
    CAPTURE(std::string(row.name));
    for (std::size_t i = 0; i < row.labels.size(); ++i)
      CHECK(row.labels[i].name.empty() == (i >= row.label_count()));
  }
}

TEST_CASE("names: latencies have the bounds that were promised, to the digit", "[metrics][names]") {
  CHECK(kLatencyBuckets ==
        std::array{
            0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0});
  CHECK(kGrpcLatencyBuckets == std::array{0.0,   0.00001, 0.00005, 0.0001, 0.0003, 0.0006, 0.0008,
                                          0.001, 0.002,   0.003,   0.004,  0.005,  0.006,  0.008,
                                          0.01,  0.013,   0.016,   0.02,   0.025,  0.03,   0.04,
                                          0.05,  0.065,   0.08,    0.1,    0.13,   0.16,   0.2,
                                          0.25,  0.3,     0.4,     0.5,    0.65,   0.8,    1.0,
                                          2.0,   5.0,     10.0,    20.0,   50.0,   100.0});
}

TEST_CASE("names: failovers have the bounds that the documents list", "[metrics][names]") {
  const std::vector<double> listed{
      0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 11.0, 15.0, 30.0, 60.0};
  CHECK(row_of(Metric::kFailoverDuration).buckets == Buckets::kFailover);
  for (const LatencyScale scale : {LatencyScale::kShort, LatencyScale::kGrpc})
    CHECK(std::ranges::equal(bounds_of(Buckets::kFailover, scale), listed));
}

TEST_CASE("names: buckets rise", "[metrics][names]") {
  for (const Buckets buckets :
       {Buckets::kFailover, Buckets::kLatency, Buckets::kSize, Buckets::kWeight}) {
    for (const LatencyScale scale : {LatencyScale::kShort, LatencyScale::kGrpc}) {
      const auto bounds = bounds_of(buckets, scale);
      CHECK_FALSE(bounds.empty());
      CHECK(std::ranges::is_sorted(bounds));
      CHECK(std::ranges::adjacent_find(bounds) == bounds.end());
    }
  }
}

}  // namespace
}  // namespace signalbox::metrics
