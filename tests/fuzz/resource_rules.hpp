// SPDX-License-Identifier: Apache-2.0
//
// Rules that hold for any bytes that are parsed as a resource or as a response.
//
//   bytes ─▶ [check_resource] ─▶ parse_resource, decode_response ─▶ R1 to R7, or abort()
//
// Rules
//   R1  The result is a resource or a rejection, never both, never neither. A response is ACKed
//       exactly when all of it is valid (A46).
//   R2  An error names the resource if its name could be read. It is INVALID_ARGUMENT, UTF-8, and
//       at most kMaxErrorLength long: it has to fit into an error_detail.
//   R3  The same bytes give the same result twice.
//   R4  A valid resource gives an equal resource after it is decoded and encoded again without its
//       unknown fields.
//   R5  A valid resource has the name that its bytes have, and the type that was asked for.
//   R6  Under small limits no resource with too many clusters, endpoints or routes, or with a name
//       too long, is valid. A valid resource is the same as without these limits. A rejection names
//       a limit exactly when a limit is its reason.
//   R7  decode_response gives for each resource of a response what parse_resource gives.

#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

#include "messages/resource.hpp"

namespace signalbox::fuzz {

inline constexpr std::size_t kMaxErrorLength = std::size_t{64} << 10U;

void check_resource(ResourceType type, absl::string_view bytes);

void check_response(absl::string_view bytes);

}  // namespace signalbox::fuzz
