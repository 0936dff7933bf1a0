// SPDX-License-Identifier: Apache-2.0
//
// Strings that are not UTF-8: protobuf refuses the message that has one, and does not return which.
//
//   bytes ─▶ decode, refused ─▶ [find_bad_text] ─▶ "eds_cluster_config.service_name" ─▶ NACK
//
// Looked for only once a message has been refused: a good one costs nothing. Invalid bytes inside
// an Any are found when the Any is decoded.
//
// Source: protobuf's language guide (a string is UTF-8, or its message no message).

#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include <google/protobuf/descriptor.h>

namespace signalbox::xds {

/// As protobuf judges it.
bool is_utf8(absl::string_view text);

/// Of a text the first `size` bytes, or up to three fewer: no character is cut in two.
absl::string_view utf8_prefix(absl::string_view text, std::size_t size);

struct BadText {
  std::string field;       ///< "endpoints[2].locality.zone"
  absl::string_view text;  ///< Within the bytes.
};

/// The first string field that is not UTF-8 in the bytes of a message of this type; nullopt: none
/// was found before the bytes stopped to be a message.
std::optional<BadText> find_bad_text(absl::string_view bytes,
                                     const ::google::protobuf::Descriptor& type);

}  // namespace signalbox::xds
