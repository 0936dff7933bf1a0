// SPDX-License-Identifier: Apache-2.0
//
// The headers that gRPC sends with a call. gRPC ends the process when it is given any other header,
// so headers from outside are checked first.
//
//   channel: the application's headers ─┐
//   lb/route/filtered_call: a filter's ─┴▶ [is_header_name, is_header_value]
//
// Source: gRPC's PROTOCOL-HTTP2, "Custom-Metadata", and the behaviour of gRPC 1.51.

#pragma once

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace signalbox {

/// Whether gRPC accepts a header with this name: one or more lower-case letters, digits, '-', '_'
/// and '.'.
inline bool is_header_name(absl::string_view name) {
  const auto may_be_in_it = [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && std::ranges::all_of(name, may_be_in_it);
}

/// Whether gRPC accepts the value in a header with this name. It accepts printable ASCII, and any
/// bytes when "-bin" follows at least one other character in the name.
inline bool is_header_value(absl::string_view name, absl::string_view value) {
  constexpr absl::string_view kBinary = "-bin";
  const auto is_printable = [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  };
  return (name.size() > kBinary.size() && absl::EndsWith(name, kBinary)) ||
         std::ranges::all_of(value, is_printable);
}

/// Returns where a text stops being printable ASCII: "byte 3 of 12 is not printable ASCII". The
/// result quotes no part of the text, because the text may be secret. Precondition: a byte of the
/// text is not printable.
inline std::string unprintable_in(absl::string_view text) {
  const auto wrong = std::ranges::find_if_not(
      text, [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); });
  return absl::StrCat(
      "byte ", wrong - text.begin() + 1, " of ", text.size(), " is not printable ASCII");
}

}  // namespace signalbox
