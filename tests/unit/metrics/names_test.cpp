// SPDX-License-Identifier: Apache-2.0
#include "metrics/names.hpp"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include <catch2/catch.hpp>

namespace signalbox::metrics {
namespace {

TEST_CASE("names: each metric has a name of its own, in Prometheus' customs", "[metrics][names]") {
  std::set<std::string> names;
  for (const MetricRow& row : kMetrics) {
    CAPTURE(std::string(row.name));
    CHECK(names.insert(std::string(row.name)).second);
    CHECK(absl::StartsWith(row.name, "signalbox_"));
    CHECK(absl::EndsWith(row.name, "_total") == (row.kind == MetricKind::kCounter));
    CHECK(absl::EndsWith(row.name, "_seconds") == (row.kind == MetricKind::kHistogram));
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

TEST_CASE("names: buckets rise", "[metrics][names]") {
  CHECK(std::ranges::is_sorted(kFailoverBuckets));
  CHECK(std::ranges::adjacent_find(kFailoverBuckets) == kFailoverBuckets.end());
}

}  // namespace
}  // namespace signalbox::metrics
