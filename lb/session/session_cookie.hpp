// SPDX-License-Identifier: Apache-2.0
//
// session_cookie — reads and writes the cookies of sessions.
//
//   "cookie" headers ─▶ find_cookie ─▶ value ─▶ decode_cookie ─▶ parse_cookie_host ─▶ CookieHost
//   hosts, cluster ─▶ write_cookie_host, or envoy_cookie ─▶ base64, or sealed ─▶ "set-cookie"
//
// A client may send any cookie. So its length is checked before anything is allocated, and the
// parsers stop at fixed limits.
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

/// The longest value of a session's cookie that is read or written. It decodes to less than 4 KiB.
inline constexpr std::size_t kLongestCookieValue = (std::size_t{4} << 10U) / 3 * 4;
/// The most addresses that a cookie may name. A pick may look up each address in each leaf of an
/// aggregate, so a forged list would make the pick expensive. Endpoints usually have one or two
/// addresses (A61). A cookie for an endpoint with more names the one in use and the first others.
inline constexpr std::size_t kMostCookieHosts = 8;

/// The reason why a call's cookie is not used.
enum class CookieFlaw : std::uint8_t {
  kTooMany,       ///< The search for the cookie reached a limit (find_cookie.hpp).
  kTooLong,       ///< Longer than kLongestCookieValue.
  kEncoding,      ///< It is not base64.
  kSeal,          ///< Not sealed with a known key for this cookie name and target.
  kHost,          ///< The text before the first ";" is no list of "ip:port".
  kMessage,       ///< Begins like a cookie in Envoy's form, but is not a valid one.
  kTwoForms,      ///< A reader of gRPC's form and one of Envoy's would find different hosts.
  kTooManyHosts,  ///< It names more than kMostCookieHosts addresses.
};

/// The reason as a clause of a message, such as "it is not base64".
absl::string_view said_of(CookieFlaw flaw);

/// Decodes base64, with or without padding, into `text`, which keeps its memory. nullopt: success.
/// Else the reason, kTooLong or kEncoding.
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

  /// Whether the cookie names the addresses `all`, and no others, in the same order. `all`: at most
  /// kMostCookieHosts addresses of an endpoint, comma-separated, the address in use first. A cookie
  /// in Envoy's form names one address, so it is compared with the first of `all`.
  bool names_hosts(absl::string_view all) const;

  /// Whether the cookie names this cluster, with or without A60's "cluster:" before it (A55-46).
  bool names_cluster(absl::string_view name) const;

  friend bool operator==(const CookieHost&, const CookieHost&) = default;
};

/// The name without its prefix: "orders" for "cluster:orders" (A60); nullopt: the text does not
/// begin with "cluster:".
std::optional<absl::string_view> without_cluster_prefix(absl::string_view text);

/// Reads a decoded cookie, in gRPC's form or Envoy's. nullopt: success. A protobuf message with
/// other fields than those of EnvoyCookie is refused.
std::optional<CookieFlaw> parse_cookie_host(absl::string_view text, CookieHost& host);

/// The first address of a comma-separated list.
absl::string_view first_host(absl::string_view hosts);

/// Writes gRPC's form (A60), "hosts;cluster", into `text`, which keeps its memory.
void write_cookie_host(absl::string_view hosts, absl::string_view cluster, std::string& text);

/// The unsealed value of a cookie in gRPC's form.
std::string plain_cookie(absl::string_view hosts, absl::string_view cluster);

/// Whether the text is like "10.0.0.1:80" or "[2001:db8::1]:80".
bool is_ip_and_port(absl::string_view text);

/// The attributes of every Set-Cookie, beginning with "; " (A55-22).
std::string attributes_of(const SessionCookie& cookie);

}  // namespace signalbox::lb
