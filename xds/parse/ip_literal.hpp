// SPDX-License-Identifier: Apache-2.0
//
// Canonical text of IP addresses, so that equal addresses have equal texts.
//
//   xds/parse/address ─▶ [canonical_ip] ─▶ "1.2.3.4", "2001:db8::1"
//
// It does not use the operating system's functions, because xds is pure.
//
// Source: RFC 4291 section 2.2 (forms), RFC 5952 (canonical form).

#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::xds {

/// The address in canonical form, without brackets; nullopt if the text is no address. An address
/// with an IPv6 zone ("%eth0") counts as no address.
std::optional<std::string> canonical_ip(absl::string_view text);

}  // namespace signalbox::xds
