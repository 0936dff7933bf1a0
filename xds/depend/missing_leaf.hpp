// SPDX-License-Identifier: Apache-2.0
//
// MissingLeaf — whether an aggregate stays usable when a cluster below it has no resource. It has a
// header of its own, because the environment of every actor includes it and nothing else of the
// cluster graph.
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
