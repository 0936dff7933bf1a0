// SPDX-License-Identifier: Apache-2.0
//
// TextMatcher — one way to compare a text: paths and headers of routes, names in certificates.
//
//   xds/parse ─▶ [TextMatcher] ─▶ lb/route, peer_names: compiled before its first use
//
// Patterns are kept as text. The parser has made sure that RE2 compiles them.
// Source: envoy.type.matcher.v3.StringMatcher; gRFC A28, A63.

#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace signalbox {

/// How a text is compared. A regular expression must match the whole text.
struct TextMatcher {
  enum class Kind : std::uint8_t { kExact, kPrefix, kSuffix, kContains, kRegex };

  Kind kind = Kind::kExact;
  std::string text;
  bool ignore_case = false;

  friend bool operator==(const TextMatcher&, const TextMatcher&) = default;
  friend auto operator<=>(const TextMatcher&, const TextMatcher&) = default;
};

}  // namespace signalbox
