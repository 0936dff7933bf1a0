// SPDX-License-Identifier: Apache-2.0
//
// MissingLeaf — what a leaf cluster without a resource does to its aggregate. A header of its own:
// every actor's environment has a value, and needs nothing else of the cluster graph.
//
//   RuntimeOptions ─▶ Environment::missing_leaf ─▶ DependencyManager ─▶ flatten()

#pragma once

#include <cstdint>

namespace signalbox::xds {

enum class MissingLeaf : std::uint8_t {
  kSkip,           ///< A74: calls use the other leaves.
  kFailAggregate,  ///< A37-13: a missing leaf fails the whole aggregate.
};

}  // namespace signalbox::xds
