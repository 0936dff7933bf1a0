// SPDX-License-Identifier: Apache-2.0
//
// Times the making of the metrics page, for a runtime with 100 clusters of 100 endpoints. One
// target or ten targets call the clusters. Histograms have signalbox's buckets or gRPC's.

#include <cstddef>

#include <benchmark/benchmark.h>

#include "metrics/exporter.hpp"
#include "tests/support/large_metrics.hpp"

namespace signalbox::bench {
namespace {

void scrape(benchmark::State& state) {
  const auto scale =
      state.range(1) == 0 ? metrics::LatencyScale::kShort : metrics::LatencyScale::kGrpc;
  const auto made = testing::large_metrics(
      static_cast<std::size_t>(state.range(0)), /*clusters=*/100, /*endpoints=*/100, scale);
  const metrics::Exporter exporter(made.instruments);
  std::size_t bytes = 0;
  for (auto _ : state)
    bytes = exporter.text().size();
  state.counters["bytes"] = static_cast<double>(bytes);
}

BENCHMARK(scrape)
    ->ArgNames({"targets", "grpc_buckets"})
    ->ArgsProduct({{1, 10}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace signalbox::bench

BENCHMARK_MAIN();
