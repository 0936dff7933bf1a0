// SPDX-License-Identifier: Apache-2.0
//
// Times the building of the tables by which maglev and ring_hash find an endpoint for a hash.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <benchmark/benchmark.h>

#include "lb/leaf/hash_ring.hpp"
#include "lb/leaf/maglev_table.hpp"

namespace signalbox::bench {
namespace {

// The default size of maglev's table, and Envoy's largest ring.
constexpr std::uint32_t kSlots = 65'537;
constexpr std::uint64_t kMostPoints = 8'388'608;

// Endpoints with different weights: 1, 2, … up to a greatest weight.
class Endpoints {
 public:
  Endpoints(std::size_t count, std::size_t greatest_weight) {
    for (std::size_t i = 0; i < count; ++i)
      keys_.push_back(absl::StrCat("10.0.", i / 250, ".", i % 250, ":80"));
    for (std::size_t i = 0; i < count; ++i)
      items_.push_back({.key = keys_[i], .weight = 1 + i % greatest_weight});
  }

  const std::vector<lb::HashItem>& items() const { return items_; }

 private:
  std::vector<std::string> keys_;
  std::vector<lb::HashItem> items_;
};

void maglev_table(benchmark::State& state) {
  const Endpoints endpoints(static_cast<std::size_t>(state.range(0)),
                            static_cast<std::size_t>(state.range(1)));
  for (auto _ : state)
    benchmark::DoNotOptimize(lb::MaglevTable(endpoints.items(), kSlots));
}

// A ring of at least ten points for each endpoint.
void hash_ring(benchmark::State& state) {
  const Endpoints endpoints(static_cast<std::size_t>(state.range(0)),
                            static_cast<std::size_t>(state.range(1)));
  const lb::HashRing::Sizes sizes{.min = endpoints.items().size() * 10, .max = kMostPoints};
  for (auto _ : state)
    benchmark::DoNotOptimize(lb::HashRing(endpoints.items(), sizes));
}

BENCHMARK(maglev_table)->Args({100, 1})->Args({10'000, 1})->Args({10'000, 10});
BENCHMARK(hash_ring)->Args({100, 1})->Args({10'000, 1})->Args({10'000, 10});

}  // namespace
}  // namespace signalbox::bench

BENCHMARK_MAIN();
