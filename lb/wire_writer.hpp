// SPDX-License-Identifier: Apache-2.0
//
// wire_writer — appends fields in protobuf's wire format, without a message class: for the few
// fields that lb/ writes itself. The wire types are here, too, for what lb/ reads itself.
//
//   write_envoy_cookie, load_report_request ─▶ [append_number, append_text] ─▶ bytes

#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::lb {

/// protobuf's wire types: the lowest three bits of a field's tag.
namespace wire_type {

inline constexpr std::uint32_t kVarint = 0;
inline constexpr std::uint32_t kFixed64 = 1;
inline constexpr std::uint32_t kLengthDelimited = 2;
inline constexpr std::uint32_t kGroupStart = 3;
inline constexpr std::uint32_t kGroupEnd = 4;
inline constexpr std::uint32_t kFixed32 = 5;

}  // namespace wire_type

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
