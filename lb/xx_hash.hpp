// SPDX-License-Identifier: Apache-2.0
//
// xx_hash — XXH64: the places of calls and endpoints on a ring (gRFC A42) or in a table of maglev,
// and the choice of random_subsetting (gRFC A68). gRPC clients in all languages use this hash for
// ring_hash. So clients with equal endpoints and settings send a key to the same endpoint.
//
//   a call's header ─▶ [xx_hash] ─▶ PickArgs::hash ┐
//   an endpoint's key ─▶ [xx_hash] ─▶ HashRing, … ─┴▶ pick

#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace signalbox::lb {

std::uint64_t xx_hash(absl::string_view text, std::uint64_t seed = 0);

}  // namespace signalbox::lb
