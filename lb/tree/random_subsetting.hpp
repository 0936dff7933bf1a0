// SPDX-License-Identifier: Apache-2.0
//
// random_subsetting — gives its child a random subset of the endpoints (gRFC A68).
//
//   parent ─▶ [random_subsetting: choose_subset] ─▶ the child policy, with subset_size endpoints
//
// The subset is the endpoints with the lowest hashes: XXH64 of the first address, with the policy's
// own seed (rendezvous hashing). Different clients have different seeds, so many clients together
// use all endpoints about equally. If the list gains or loses one endpoint, at most one endpoint of
// a subset changes.
//
// Invariants
//   I1  With at most subset_size endpoints the child gets the list itself.
//   I2  An unchanged locality of which the same endpoints are chosen as before keeps its pointer.
//       So the child sees no change.
//   I3  The HostReport covers only the subset, because this client uses no other endpoints.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lb/policy.hpp"
#include "messages/endpoints.hpp"

namespace signalbox::lb {

/// Chooses the subset of `all`, which may be null, among the endpoints in Priority::localities. The
/// other lists stay whole. `before`: an earlier subset, or null; its localities are used again if
/// they are equal.
EndpointsPtr choose_subset(const EndpointsPtr& all,
                           std::size_t size,
                           std::uint64_t seed,
                           const EndpointsPtr& before = nullptr);

std::unique_ptr<Policy> make_random_subsetting(const PolicyContext& context);

}  // namespace signalbox::lb
