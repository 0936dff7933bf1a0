// SPDX-License-Identifier: Apache-2.0
//
// Percent-encoding of the parts of a URI (RFC 3986), for targets and xdstp: names (gRFC A47).
// Letters, digits, `-._~`, the sub-delimiters, `:` and `@` are not encoded. Neither is `/` in a
// path, nor `[` and `]` in an authority.

#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::xds {

std::string percent_encode_path(absl::string_view text);
std::string percent_encode_authority(absl::string_view text);

/// Replaces each %XX by its byte; nullopt if a `%` is not followed by two hexadecimal digits.
std::optional<std::string> percent_decode(absl::string_view text);

/// The bytes that a hexadecimal text stands for, two digits for each byte; nullopt if the text is
/// not hexadecimal.
std::optional<std::string> hex_decode(absl::string_view text);

}  // namespace signalbox::xds
