// SPDX-License-Identifier: Apache-2.0
//
// peer_names — whether a server's certificate has a name that its cluster allows (gRFC A29).
//
//   UpstreamTls::subject_alt_names ─▶ [PeerNameCheck] ◀─ names of the certificate, each handshake
//                                           └▶ OK, or why there is no connection
//
// A certificate passes when any matcher allows any of its names. Without matchers, names are not
// checked. An exact matcher compares DNS names as DNS does: case and a final dot do not matter, and
// "*.shop.com" in a certificate matches "a.shop.com", but not "a.b.shop.com". Other matchers, and
// names of other kinds, are compared as text.
//
// Source: gRFC A29 (server authorization), as C-core and grpc-go match; RFC 6125, section 6.4.3.

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "lb/route/route_match.hpp"
#include "messages/text_matcher.hpp"

namespace signalbox::lb {

/// The subject alternative names of a certificate.
struct PeerNames {
  std::vector<std::string> dns;
  std::vector<std::string> others;  ///< URIs, e-mail addresses, IP addresses as text.
};

/// Whether `pattern`, a DNS name in a certificate, perhaps with a wildcard, matches the host
/// `name`.
bool matches_dns_name(absl::string_view pattern, absl::string_view name);

/// Immutable; any thread may call it at any time.
class PeerNameCheck {
 public:
  explicit PeerNameCheck(const std::vector<TextMatcher>& allowed);

  /// UNAUTHENTICATED: no name is allowed. The text shows some of the names and of the matchers.
  absl::Status check(const PeerNames& names) const;

 private:
  struct Rule {
    TextMatcher matcher;
    CompiledText text;
  };

  std::vector<Rule> rules_;
};

}  // namespace signalbox::lb
