// SPDX-License-Identifier: Apache-2.0
//
// address_order — in which order pick_first tries the addresses of its endpoints.
//
//   endpoints ─▶ [shuffled, if so configured] ─▶ flattened ─▶ [families interleaved] ─▶ addresses
//                 A62; by weight: A113            A61           RFC 8305, section 4
//
// Pure; all chance is the seed's, so that an update that changes nothing leaves the order alone.

#pragma once

#include <cstdint>
#include <vector>

#include "messages/endpoints.hpp"

namespace signalbox::lb {

enum class Shuffle : std::uint8_t {
  kNone,      ///< As configured.
  kEvenly,    ///< Each order is as likely as any other.
  kByWeight,  ///< First stands whom a draw by weight (endpoint_weights.hpp) takes, and so on.
};

/// An endpoint moves with all its addresses, which keep their order (A61).
std::vector<Address> flatten(const Endpoints& endpoints, Shuffle shuffle, std::uint64_t seed);

/// IPv4 and IPv6 by turns, as long as there are both: the family of the first address begins.
/// Within a family the order stays. Of an address that is there twice, the first place counts.
std::vector<Address> interleave_families(std::vector<Address> addresses);

}  // namespace signalbox::lb
