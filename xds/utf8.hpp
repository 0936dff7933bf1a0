// SPDX-License-Identifier: Apache-2.0
//
// utf8 — finds the string that is not UTF-8. protobuf refuses a message with such a string, and
// does not say which string it is.
//
//   bytes ─▶ decode, refused ─▶ [find_bad_text] ─▶ "eds_cluster_config.service_name" ─▶ NACK
//
// The search runs only after a message was refused, so valid messages cost nothing.
// Invalid bytes inside an Any are found when the Any is decoded.
//
// Source: protobuf's language guide (a string field must be UTF-8).

#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include <google/protobuf/descriptor.h>

namespace signalbox::xds {

/// Whether protobuf accepts the text in a string field.
bool is_utf8(absl::string_view text);

/// The text as a string field may hold it: a text that is not UTF-8 is escaped.
std::string as_utf8(absl::string_view text);

/// The first `size` bytes of the text, or up to three fewer, so that no character is cut in two.
absl::string_view utf8_prefix(absl::string_view text, std::size_t size);

struct BadText {
  std::string field;       ///< The path of the string field, such as "endpoints[2].locality.zone".
  absl::string_view text;  ///< A view into the bytes of the message.
};

/// The first string field that is not UTF-8, in the bytes of a message of this type. The search
/// skips the rest of a malformed message, and messages that are nested deeper than protobuf
/// allows. nullopt: none was found.
std::optional<BadText> find_bad_text(absl::string_view bytes,
                                     const ::google::protobuf::Descriptor& type);

}  // namespace signalbox::xds
