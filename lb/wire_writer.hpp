// SPDX-License-Identifier: Apache-2.0
//
// wire_writer — appends fields in protobuf's wire format, without a message class: for the few
// fields that lb/ writes itself.
//
//   write_envoy_cookie, load_report_request ─▶ [append_number, append_text] ─▶ bytes

#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "messages/wire_type.hpp"

namespace signalbox::lb {

/// Seven bits in each byte, the lowest first; the eighth bit says that another byte follows.
inline void append_varint(std::uint64_t number, std::string& bytes) {
  constexpr std::uint64_t kMoreFollows = 0x80;
  for (; number >= kMoreFollows; number >>= 7U)
    bytes.push_back(static_cast<char>(number | kMoreFollows));
  bytes.push_back(static_cast<char>(number));
}

/// A field of an integer type other than sint and fixed. A zero is written too.
inline void append_number(std::uint32_t field, std::uint64_t number, std::string& bytes) {
  append_varint(std::uint64_t{field} << 3U | wire_type::kVarint, bytes);
  append_varint(number, bytes);
}

/// A field of type string or bytes, or an encoded message. An empty text is written too.
inline void append_text(std::uint32_t field, absl::string_view text, std::string& bytes) {
  append_varint(std::uint64_t{field} << 3U | wire_type::kLengthDelimited, bytes);
  append_varint(text.size(), bytes);
  bytes.append(text.data(), text.size());
}

}  // namespace signalbox::lb
