// SPDX-License-Identifier: Apache-2.0
//
// Times a whole pick (snapshot, route, cluster, the cluster's limit of calls, round_robin over n
// endpoints), and the destruction of its result, the lb::Pick. A pick takes references to cluster
// and connection, and counts the call against the limit. The run with two threads shows whether
// threads write to one cache line. cold_pick does not time the destruction. It times picks after
// other work, which replaces most contents of the first two levels of caches: see cold_loop.hpp.

#include <cstddef>
#include <memory>
#include <utility>

#include <benchmark/benchmark.h>

#include "lb/tree/cluster_impl_picker.hpp"
#include "lb/tree/cluster_manager_picker.hpp"
#include "tests/bench/cold_loop.hpp"
#include "tests/bench/round_robin_cluster.hpp"
#include "tests/support/router_fixture.hpp"

namespace signalbox::bench {
namespace {

// The picker that cluster_impl makes. Its limit of 1,024 concurrent calls is never reached.
PickerPtr limited(const ClusterName& name, const PickerPtr& child) {
  auto rules = std::make_shared<lb::CallRules>();
  rules->gate = std::make_shared<const lb::RequestGate>(
      std::make_shared<const lb::RequestLimit>(), 1'024, name, nullptr);
  return lb::make_cluster_impl_picker(child, std::move(rules));
}

// A router with two clusters. If a cluster has one locality, and no feature adds a picker, a call
// passes two pickers above the leaf policy's. Both are made here: cluster_manager's, and
// cluster_impl's for each cluster.
std::unique_ptr<testing::RouterFixture> world_with(std::size_t endpoints) {
  auto world = std::make_unique<testing::RouterFixture>();
  const ClusterName orders("orders");
  const ClusterName billing("billing");
  const RoundRobinCluster cluster(endpoints);
  const lb::ClusterTable table(
      {{orders, limited(orders, cluster.picker())}, {billing, limited(billing, cluster.picker())}});
  world->publish(testing::config_of({
                     testing::route(testing::prefix("/shop.v1.Billing/"), testing::to("billing")),
                     testing::route(testing::prefix("/shop.v1.Orders/"), testing::to("orders")),
                 }),
                 lb::make_cluster_picker(table));
  return world;
}

void pick(benchmark::State& state) {
  static std::unique_ptr<testing::RouterFixture> world;
  if (state.thread_index() == 0) world = world_with(static_cast<std::size_t>(state.range(0)));
  std::uint64_t seed = 0;
  for (auto _ : state) {
    const lb::Pick receipt = world->router.pick({"/shop.v1.Orders/Get", nullptr, ++seed});
    benchmark::DoNotOptimize(receipt.connection());
  }
  if (state.thread_index() == 0) world.reset();
}

void cold_pick(benchmark::State& state) {
  const auto world = world_with(static_cast<std::size_t>(state.range(0)));
  std::uint64_t seed = 0;
  cold_loop(
      state,
      [&] { ++seed; },
      [&] { return world->router.pick({"/shop.v1.Orders/Get", nullptr, seed}); });
}

BENCHMARK(cold_pick)->Arg(2)->Arg(1'000)->Arg(10'000)->UseManualTime()->Iterations(2'000);
BENCHMARK(pick)->Arg(2)->Arg(1'000)->Arg(10'000)->Threads(1)->Threads(2);

}  // namespace
}  // namespace signalbox::bench

BENCHMARK_MAIN();
