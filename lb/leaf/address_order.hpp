// SPDX-License-Identifier: Apache-2.0
//
// address_order — the order in which pick_first tries the addresses of its endpoints.
//
//   endpoints ─▶ [shuffled, if so configured] ─▶ flattened ─▶ [families interleaved] ─▶ addresses
//                 A62; by weight: A113            A61           RFC 8305, section 4
//
// Pure. The shuffle depends only on the seed and the endpoints, so with the same seed an update
// without changes keeps the order.

#pragma once

#include <cstdint>
#include <vector>

#include "messages/endpoints.hpp"

namespace signalbox::lb {

enum class Shuffle : std::uint8_t {
  kNone,      ///< The configured order is kept.
  kEvenly,    ///< Each order is as likely as any other.
  kByWeight,  ///< Each next endpoint is drawn by weight (endpoint_weights.hpp).
};

/// All addresses, in the order in which their endpoints were shuffled. An endpoint's own addresses
/// stay together, in their order (A61).
std::vector<Address> flatten(const Endpoints& endpoints, Shuffle shuffle, std::uint64_t seed);

/// Alternates IPv4 and IPv6 while both are left, beginning with the family of the first address.
/// Each family keeps its order. An address that occurs twice keeps its first place only.
std::vector<Address> interleave_families(std::vector<Address> addresses);

}  // namespace signalbox::lb
