// SPDX-License-Identifier: Apache-2.0
#include "lb/health/endpoint_weights.hpp"

#include <catch2/catch.hpp>

namespace signalbox::lb {
namespace {

constexpr std::uint64_t kOne = std::uint64_t{1} << 31U;

LocalityPtr locality(std::uint32_t weight, const std::vector<std::uint32_t>& endpoints) {
  Locality locality;
  locality.weight = weight;
  for (const std::uint32_t endpoint : endpoints) {
    locality.endpoints.push_back({});
    locality.endpoints.back().addresses = {Address("a" + std::to_string(endpoint))};
    locality.endpoints.back().weight = endpoint;
  }
  return std::make_shared<const Locality>(std::move(locality));
}

std::vector<std::uint64_t> weights(const Endpoints& endpoints, WeightRule rule) {
  std::vector<std::uint64_t> weights;
  for (const WeighedEndpoint& one : weigh(endpoints, rule))
    weights.push_back(one.weight);
  return weights;
}

using Weights = std::vector<std::uint64_t>;

TEST_CASE("endpoint_weights: a share of the locality's share", "[lb][endpoint_weights][A113]") {
  Endpoints endpoints;
  endpoints.priorities = {{{locality(1, {1, 3}), locality(3, {5})}}};
  CHECK(weights(endpoints, WeightRule::kShare) == Weights{kOne / 16, kOne * 3 / 16, kOne * 3 / 4});
}

TEST_CASE("endpoint_weights: each priority is a whole", "[lb][endpoint_weights][A113]") {
  Endpoints endpoints;
  endpoints.priorities = {{{locality(7, {2})}}, {{locality(1, {1, 1})}}};
  CHECK(weights(endpoints, WeightRule::kShare) == Weights{kOne, kOne / 2, kOne / 2});
}

TEST_CASE("endpoint_weights: no endpoint is without a share", "[lb][endpoint_weights][A113]") {
  Endpoints endpoints;
  endpoints.priorities = {{{locality(1, {1, UINT32_MAX}), locality(UINT32_MAX, {1})}}};
  const Weights shares = weights(endpoints, WeightRule::kShare);
  CHECK(shares[0] == 1);
  CHECK(shares[2] >= kOne - 2);
  CHECK(weights({}, WeightRule::kShare).empty());
  endpoints.priorities = {{{locality(0, {0})}}};
  CHECK(weights(endpoints, WeightRule::kShare) == Weights{1});
  CHECK(weights(endpoints, WeightRule::kProduct) == Weights{1});
}

TEST_CASE("endpoint_weights: knows endpoint and locality", "[lb][endpoint_weights]") {
  Endpoints endpoints;
  endpoints.priorities = {{{locality(2, {4})}}};
  const auto weighed = weigh(endpoints, WeightRule::kShare);
  REQUIRE(weighed.size() == 1);
  CHECK(weighed[0].locality == endpoints.priorities[0].localities[0]);
  CHECK(weighed[0].endpoint == &weighed[0].locality->endpoints[0]);
}

}  // namespace
}  // namespace signalbox::lb
