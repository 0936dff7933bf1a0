// SPDX-License-Identifier: Apache-2.0
//
// endpoint_weights — the share of its priority's calls that each endpoint should have.
//
//   localities ▷ endpoints, each with a weight ─▶ [weigh] ─▶ one weight for each endpoint
//
// By WeightRule::kShare (gRFC A113), the result is the product of two fractions, in units of 2⁻³¹:
//   the endpoint's weight / the sum of the endpoints' weights in its locality
//   the locality's weight / the sum of the localities' weights in its priority
//
// WeightRule::kProduct is the rule before A113: the endpoint's weight times the locality's weight.
// It gives a locality more calls the more endpoints the locality has. No result is 0.

#pragma once

#include <cstdint>
#include <vector>

#include "messages/endpoints.hpp"

namespace signalbox::lb {

enum class WeightRule : std::uint8_t { kShare, kProduct };

struct WeighedEndpoint {
  LocalityPtr locality;
  const Endpoint* endpoint = nullptr;  ///< Points into `locality`.
  std::uint64_t weight = 1;            ///< Never 0.
};

/// The weights of the endpoints in Priority::localities, in the order of the configuration.
std::vector<WeighedEndpoint> weigh(const Endpoints& endpoints, WeightRule rule);

}  // namespace signalbox::lb
