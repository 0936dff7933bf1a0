// SPDX-License-Identifier: Apache-2.0
//
// session_cookie — what a session's cookie says, and how it is written.
//
//   "cookie" headers ─▶ find_cookie ─▶ value ─▶ decode_cookie ─▶ parse_cookie_host ─▶ CookieHost
//   hosts, cluster ─▶ write_cookie_host, or envoy_cookie ─▶ base64, or sealed ─▶ "set-cookie"
//
// A cookie comes from who knows where: nothing is allocated before its length is known, and what
// is beyond a limit is not looked at.
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

/// Of a session's cookie: it decodes to less than 4 KiB. No longer one is written either.
inline constexpr std::size_t kLongestCookieValue = (std::size_t{4} << 10U) / 3 * 4;
/// Addresses that a cookie may name. A pick looks up each address in each leaf of an aggregate, so
/// a forged list would make the pick expensive. Endpoints have one address, or two (A61); of an
/// endpoint with more than this, cookies name the first ones.
inline constexpr std::size_t kMostCookieHosts = 8;

/// Why a call's cookie is not used.
enum class CookieFlaw : std::uint8_t {
  kTooMany,       ///< It is not among what is looked at, and there is more.
  kTooLong,       ///< Beyond kLongestCookieValue.
  kEncoding,      ///< It is not base64.
  kSeal,          ///< It is not sealed with one of our keys, or for another cookie or target.
  kHost,          ///< It does not begin with "ip:port".
  kMessage,       ///< It is in none of the forms, and begins as Envoy's does.
  kTwoForms,      ///< gRPC's readers and Envoy's would find a host in it, each another one.
  kTooManyHosts,  ///< Beyond kMostCookieHosts.
};

/// For a text: "it is not base64".
absl::string_view said_of(CookieFlaw flaw);

/// Base64, with or without padding, into `text`, which keeps its memory. nullopt: it is done.
std::optional<CookieFlaw> decode_cookie(absl::string_view value, std::string& text);

/// How a cookie says what it says.
enum class CookieForm : std::uint8_t {
  kGrpc,   ///< "ip:port" (A55), "ip:port;cluster" (A60), "ip:port,ip:port;cluster" (A61).
  kEnvoy,  ///< A message, see envoy_cookie.hpp.
};

/// What a cookie says. The views are in the text that was parsed.
struct CookieHost {
  absl::string_view hosts;    ///< "ip:port[,ip:port…]"; empty: there is no cookie.
  absl::string_view cluster;  ///< As it stands there, "cluster:" before it or not; empty: none.
  CookieForm form = CookieForm::kGrpc;

  /// Whether an endpoint with these addresses, the one in use first, is the cookie's, and nothing
  /// of it has changed. Envoy's form has room for the first address alone.
  bool names_hosts(absl::string_view all) const;

  /// Whether the cookie says this cluster, with A60's "cluster:" before it or without (A55-46).
  bool names_cluster(absl::string_view name) const;

  friend bool operator==(const CookieHost&, const CookieHost&) = default;
};

/// "orders" of "cluster:orders" (A60); nullopt: the text does not begin so.
std::optional<absl::string_view> without_cluster_prefix(absl::string_view text);

/// Reads one of the forms. nullopt: it is done. A message with fields that are neither Envoy's nor
/// ours is in no form.
std::optional<CookieFlaw> parse_cookie_host(absl::string_view text, CookieHost& host);

/// The first of the addresses between commas.
absl::string_view first_host(absl::string_view hosts);

/// gRPC's form (A60): "hosts;cluster", into `text`, which keeps its memory.
void write_cookie_host(absl::string_view hosts, absl::string_view cluster, std::string& text);

/// The value of the cookie of gRPC's form that says so, unsealed.
std::string plain_cookie(absl::string_view hosts, absl::string_view cluster);

/// "10.0.0.1:80", "[2001:db8::1]:80".
bool is_ip_and_port(absl::string_view text);

/// What follows a cookie's value in every Set-Cookie (A55-22).
std::string attributes_of(const SessionCookie& cookie);

}  // namespace signalbox::lb
