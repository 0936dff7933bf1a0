// SPDX-License-Identifier: Apache-2.0
//
// wire_type — protobuf's wire types: the lowest three bits of a field's tag. xds reads messages
// with them, and lb writes and reads a few fields.

#pragma once

#include <cstdint>

namespace signalbox::wire_type {

inline constexpr std::uint32_t kVarint = 0;
inline constexpr std::uint32_t kFixed64 = 1;
inline constexpr std::uint32_t kLengthDelimited = 2;
inline constexpr std::uint32_t kGroupStart = 3;
inline constexpr std::uint32_t kGroupEnd = 4;
inline constexpr std::uint32_t kFixed32 = 5;

}  // namespace signalbox::wire_type
