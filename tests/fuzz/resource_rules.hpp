// SPDX-License-Identifier: Apache-2.0
//
// What holds for any bytes that are taken for a resource or a response.
//
//   bytes ─▶ [check_resource] ─▶ parse_resource, decode_response ─▶ R1 to R7, or abort()
//
// Rules
//   R1  There is a resource or a rejection, never both, never neither; a response is ACKed exactly
//       when all of it is valid (A46).
//   R2  An error names the resource, is INVALID_ARGUMENT, at most kMaxErrorLength long, and UTF-8:
//       it has to fit into an error_detail.
//   R3  The same bytes twice are the same twice.
//   R4  A valid resource, decoded, without its unknown fields, and encoded again is equal to
//       itself.
//   R5  A valid resource has the name that its bytes say, and the type that was asked for.
//   R6  Under small limits nothing larger is valid, what is valid is what it was without them, and
//       a rejection names a limit exactly when its reason is one.
//   R7  A response says of each of its resources what parse_resource does.

#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

#include "messages/resource.hpp"

namespace signalbox::fuzz {

inline constexpr std::size_t kMaxErrorLength = std::size_t{64} << 10U;

void check_resource(ResourceType type, absl::string_view bytes);

void check_response(absl::string_view bytes);

}  // namespace signalbox::fuzz
