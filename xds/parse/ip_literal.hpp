// SPDX-License-Identifier: Apache-2.0
//
// IP addresses as text, in one spelling: what is one address compares equal as text.
//
//   xds/parse/address ─▶ [canonical_ip] ─▶ "1.2.3.4", "2001:db8::1"
//
// Ours, because the operating system's own functions stop at actors/io.
//
// Source: RFC 4291 section 2.2 (forms), RFC 5952 (the one spelling).

#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace signalbox::xds {

/// The address in its canonical spelling, without brackets; nullopt where the text is none. An
/// IPv6 zone ("%eth0") is none.
std::optional<std::string> canonical_ip(absl::string_view text);

}  // namespace signalbox::xds
