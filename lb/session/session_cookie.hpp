// SPDX-License-Identifier: Apache-2.0
//
// session_cookie — reads and writes the cookies of sessions.
//
//   "cookie" headers ─▶ find_cookie ─▶ value ─▶ decode_cookie ─▶ parse_cookie_host ─▶ CookieHost
//   hosts, cluster ─▶ write_cookie_host, or envoy_cookie ─▶ base64, or sealed ─▶ "set-cookie"
//
// A cookie may come from anywhere. Nothing is allocated before its length is known, and nothing
// beyond a limit is looked at.
//
// Source: gRFC A55, A60 (cluster), A61 (several addresses); Envoy's CookieBasedSessionState.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "lb/session/envoy_cookie.hpp"
#include "lb/session/find_cookie.hpp"
#include "messages/http_filter.hpp"

namespace signalbox::lb {

/// The longest value of a session's cookie: it decodes to less than 4 KiB. No longer value is
/// written.
inline constexpr std::size_t kLongestCookieValue = (std::size_t{4} << 10U) / 3 * 4;
/// The most addresses that a cookie may name. A pick looks up each address in each leaf of an
/// aggregate, so a forged list would make the pick expensive. Endpoints usually have one or two
/// addresses (A61). For an endpoint with more than this, cookies name the first addresses.
inline constexpr std::size_t kMostCookieHosts = 8;

/// The reason why a call's cookie is not used.
enum class CookieFlaw : std::uint8_t {
  kTooMany,       ///< Not found within the limits, and there are more cookies.
  kTooLong,       ///< Longer than kLongestCookieValue.
  kEncoding,      ///< It is not base64.
  kSeal,          ///< Not sealed with a known key, or for another cookie or target.
  kHost,          ///< Its text before the first ";" is no list of "ip:port".
  kMessage,       ///< It begins like a cookie in Envoy's form, but cannot be read as one.
  kTwoForms,      ///< gRPC's readers and Envoy's would find different hosts in it.
  kTooManyHosts,  ///< It names more than kMostCookieHosts addresses.
};

/// The flaw as a clause of a message, such as "it is not base64".
absl::string_view said_of(CookieFlaw flaw);

/// Decodes base64, with or without padding, into `text`, which keeps its memory. nullopt: success;
/// else kTooLong or kEncoding.
std::optional<CookieFlaw> decode_cookie(absl::string_view value, std::string& text);

/// The form of a cookie's content.
enum class CookieForm : std::uint8_t {
  kGrpc,   ///< "ip:port" (A55), "ip:port;cluster" (A60), "ip:port,ip:port;cluster" (A61).
  kEnvoy,  ///< A message, see envoy_cookie.hpp.
};

/// The content of a cookie. The views are into the text that was parsed.
struct CookieHost {
  absl::string_view hosts;    ///< "ip:port[,ip:port…]"; empty: no cookie.
  absl::string_view cluster;  ///< As written, with or without "cluster:"; empty: none.
  CookieForm form = CookieForm::kGrpc;

  /// Whether the cookie names exactly the endpoint with these addresses, the one in use first.
  /// Envoy's form has room for the first address alone.
  bool names_hosts(absl::string_view all) const;

  /// Whether the cookie names this cluster, with or without A60's "cluster:" before it (A55-46).
  bool names_cluster(absl::string_view name) const;

  friend bool operator==(const CookieHost&, const CookieHost&) = default;
};

/// The name without its prefix: "orders" for "cluster:orders" (A60); nullopt: the text does not
/// begin with "cluster:".
std::optional<absl::string_view> without_cluster_prefix(absl::string_view text);

/// Reads a cookie in any form. nullopt: success. A protobuf message with other fields than Envoy's
/// and signalbox's own is refused.
std::optional<CookieFlaw> parse_cookie_host(absl::string_view text, CookieHost& host);

/// The first address of a list with commas.
absl::string_view first_host(absl::string_view hosts);

/// Writes gRPC's form (A60), "hosts;cluster", into `text`, which keeps its memory.
void write_cookie_host(absl::string_view hosts, absl::string_view cluster, std::string& text);

/// The unsealed value of a cookie in gRPC's form.
std::string plain_cookie(absl::string_view hosts, absl::string_view cluster);

/// Whether the text is like "10.0.0.1:80" or "[2001:db8::1]:80".
bool is_ip_and_port(absl::string_view text);

/// The text after the cookie's value in every Set-Cookie (A55-22).
std::string attributes_of(const SessionCookie& cookie);

}  // namespace signalbox::lb
