// SPDX-License-Identifier: Apache-2.0
//
// endpoint_weights — the share of its priority's calls that each endpoint should have.
//
//   localities ▷ endpoints, each with a weight ─▶ [weigh] ─▶ one weight for each endpoint
//
// The share is the endpoint's share of its locality's weight, times the locality's share of the
// priority's weight (gRFC A113). It is counted in units of 2⁻³¹, and never 0.
//
// WeightRule::kProduct is the rule before A113: the product of the two weights. It gives a locality
// more calls the more endpoints the locality has.

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
