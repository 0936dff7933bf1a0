// SPDX-License-Identifier: Apache-2.0
//
// Times the search for a call's route among n routes: the first route matches, or only the last.
// cold_route takes one of n routes at random, by prefix or by whole path, after other work, which
// replaces most contents of the first two levels of caches: see cold_loop.hpp.

#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/bench/cold_loop.hpp"
#include "tests/support/route_fixture.hpp"

namespace signalbox::bench {
namespace {

lb::ConfigSelectorPtr selector_with(std::size_t routes) {
  std::vector<Route> all;
  for (std::size_t i = 0; i < routes; ++i) {
    all.push_back(testing::route(testing::prefix("/shop.v1.Service" + std::to_string(i) + "/"),
                                 testing::to("orders")));
  }
  const XdsConfig config = testing::config_of(std::move(all));
  return lb::make_config_selector(config, testing::refs_for(config));
}

void select(benchmark::State& state, std::size_t routes, std::size_t matching) {
  const auto selector = selector_with(routes);
  const std::string path = "/shop.v1.Service" + std::to_string(matching) + "/Get";
  std::uint64_t seed = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(selector->select({path, nullptr, nullptr, ++seed}));
}

void route_first_matches(benchmark::State& state) {
  select(state, static_cast<std::size_t>(state.range(0)), 0);
}

void route_last_matches(benchmark::State& state) {
  const auto routes = static_cast<std::size_t>(state.range(0));
  select(state, routes, routes - 1);
}

// Every second route matches a prefix; the routes between match a whole path.
void cold_route(benchmark::State& state) {
  const auto routes = static_cast<std::size_t>(state.range(0));
  std::vector<Route> all;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < routes; ++i) {
    const std::string service = "/shop.v1.Service" + std::to_string(i) + "/";
    paths.push_back(service + "Get");
    all.push_back(testing::route(i % 2 == 0 ? testing::prefix(service) : testing::exact(paths[i]),
                                 testing::to("orders")));
  }
  const XdsConfig config = testing::config_of(std::move(all));
  const auto selector = lb::make_config_selector(config, testing::refs_for(config));
  std::mt19937_64 dice;
  std::string path;  // Copied just before the search, so it is in the cache, as a call's path is.
  cold_loop(
      state,
      [&] { path = paths[dice() % routes]; },
      [&] { return selector->select({path, nullptr, nullptr, 0}); });
}

BENCHMARK(cold_route)->Arg(1)->Arg(10'000)->UseManualTime()->Iterations(2'000);
BENCHMARK(route_first_matches)->Arg(2)->Arg(100)->Arg(10'000);
BENCHMARK(route_last_matches)->Arg(2)->Arg(100)->Arg(10'000);

}  // namespace
}  // namespace signalbox::bench

BENCHMARK_MAIN();
