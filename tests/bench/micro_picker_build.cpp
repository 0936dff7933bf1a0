// SPDX-License-Identifier: Apache-2.0
//
// Times changes to a round_robin policy with n connected endpoints, with the building of the next
// picker after each change.

#include <benchmark/benchmark.h>

#include "tests/bench/round_robin_cluster.hpp"

namespace signalbox::bench {
namespace {

// An endpoint loses its connection and gets a new one, so two pickers are built.
void picker_endpoint_flaps(benchmark::State& state) {
  RoundRobinCluster cluster(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    cluster.change(0, ConnectivityState::kIdle);
    cluster.change(0, ConnectivityState::kReady);
  }
}

// Each update replaces one endpoint by a new one.
void picker_endpoint_replaced(benchmark::State& state) {
  RoundRobinCluster cluster(static_cast<std::size_t>(state.range(0)));
  std::size_t other = 0;
  for (auto _ : state)
    cluster.replace_last(++other);
}

BENCHMARK(picker_endpoint_flaps)->Arg(10)->Arg(1'000)->Arg(10'000);
BENCHMARK(picker_endpoint_replaced)->Arg(10)->Arg(1'000)->Arg(10'000);

}  // namespace
}  // namespace signalbox::bench

BENCHMARK_MAIN();
