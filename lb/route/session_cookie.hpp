// SPDX-License-Identifier: Apache-2.0
//
// session_cookie — what a session's cookie says, and how it is written.
//
//   "cookie" headers ─▶ find_cookie ─▶ value ─▶ decode_cookie ─▶ parse_cookie_host ─▶ hosts,
//   cluster hosts, cluster ─▶ base64, or lb/route/sealed_cookie ─▶ write_set_cookie ─▶ "set-cookie"
//
// A cookie comes from who knows where: nothing is allocated before its length is known, and what
// is beyond a limit is not looked at.
//
// Source: gRFC A55, A60 (cluster), A61 (several addresses).

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "lb/route/find_cookie.hpp"
#include "messages/http_filter.hpp"

namespace signalbox::lb {

/// Of a session's cookie: it decodes to less than 4 KiB. No longer one is written either.
inline constexpr std::size_t kLongestCookieValue = (std::size_t{4} << 10U) / 3 * 4;

/// Why a call's cookie is not used.
enum class CookieFlaw : std::uint8_t {
  kTooMany,   ///< It is not among what is looked at, and there is more.
  kTooLong,   ///< Beyond kLongestCookieValue.
  kEncoding,  ///< It is not base64.
  kSeal,      ///< It is not sealed with one of our keys, or for another cookie or target.
  kHost,      ///< It does not begin with "ip:port".
};

/// For a text: "it is not base64".
absl::string_view said_of(CookieFlaw flaw);

/// Base64, with or without padding, into `text`, which keeps its memory. nullopt: it is done.
std::optional<CookieFlaw> decode_cookie(absl::string_view value, std::string& text);

/// Whose host a cookie names. Both are in the text that was parsed.
struct CookieHost {
  absl::string_view hosts;    ///< "ip:port[,ip:port…]", never empty.
  absl::string_view cluster;  ///< Empty: it says none.

  friend bool operator==(const CookieHost&, const CookieHost&) = default;
};

/// "ip:port" (A55), "ip:port;cluster" (A60), "ip:port,ip:port;cluster" (A61); and what Envoy makes
/// of an address since it keeps the time in its cookies, which we ignore. nullopt: none of these.
std::optional<CookieHost> parse_cookie_host(absl::string_view text);

/// What that is read from (A60): "hosts;cluster", into `text`, which keeps its memory.
void write_cookie_host(absl::string_view hosts, absl::string_view cluster, std::string& text);

/// The value of the cookie that says so, unsealed.
std::string plain_cookie(absl::string_view hosts, absl::string_view cluster);

/// "10.0.0.1:80", "[2001:db8::1]:80".
bool is_ip_and_port(absl::string_view text);

/// What follows a cookie's value in every Set-Cookie (A55-22).
std::string attributes_of(const SessionCookie& cookie);

}  // namespace signalbox::lb
