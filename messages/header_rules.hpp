// SPDX-License-Identifier: Apache-2.0
//
// What gRPC sends as a header of a call. It ends the process that hands it anything else, so what
// comes from elsewhere is asked first.
//
//   channel: the application's, lb/route/filtered_call: a filter's ─▶ [is_header_name, …_value]
//
// Source: gRPC's PROTOCOL-HTTP2, "Custom-Metadata", and what gRPC 1.51 makes of it.

#pragma once

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace signalbox {

/// Lower-case letters, digits, '-', '_' and '.'; at least one of them.
inline bool is_header_name(absl::string_view name) {
  const auto may_be_in_it = [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && std::ranges::all_of(name, may_be_in_it);
}

/// Printable ASCII; any bytes for a name that ends with "-bin", and is more than that.
inline bool is_header_value(absl::string_view name, absl::string_view value) {
  constexpr absl::string_view kBinary = "-bin";
  const auto is_printable = [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  };
  return (name.size() > kBinary.size() && absl::EndsWith(name, kBinary)) ||
         std::ranges::all_of(value, is_printable);
}

/// Where a text stops being printable ASCII, in words that hold nothing of it: it may be secret.
/// "byte 3 of 12 is not printable ASCII". Precondition: some byte is not.
inline std::string unprintable_in(absl::string_view text) {
  const auto wrong = std::ranges::find_if_not(
      text, [](char c) { return absl::ascii_isprint(static_cast<unsigned char>(c)); });
  return absl::StrCat(
      "byte ", wrong - text.begin() + 1, " of ", text.size(), " is not printable ASCII");
}

}  // namespace signalbox
