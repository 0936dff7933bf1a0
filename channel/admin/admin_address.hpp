// SPDX-License-Identifier: Apache-2.0
//
// AdminAddress — where a runtime may be looked into: on this machine, and nowhere else.
//
//   "unix:/run/orders/admin.sock", "127.0.0.1:9901" ─▶ [parse] ─▶ AdminServer, `signalbox dump`

#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace signalbox::channel {

/// A socket in the file system; who may write to it may ask.
struct UnixAddress {
  std::string path;  ///< As given; at most 107 bytes.

  friend bool operator==(const UnixAddress&, const UnixAddress&) = default;
};

/// Any process of the machine may ask.
struct LoopbackAddress {
  std::string ip;  ///< In 127.0.0.0/8, or "::1".
  std::uint16_t port = 0;

  friend bool operator==(const LoopbackAddress&, const LoopbackAddress&) = default;
};

using AdminAddress = std::variant<UnixAddress, LoopbackAddress>;

/// "unix:PATH" or "HOST:PORT", where HOST is localhost (127.0.0.1), 127.x.x.x or [::1].
/// INVALID_ARGUMENT: what was found, and what may stand there.
absl::StatusOr<AdminAddress> parse_admin_address(absl::string_view text);

/// As parse_admin_address reads it.
std::string to_string(const AdminAddress& address);

/// Whether a request's Host header names this machine's loopback: a page in a browser that got here
/// by way of a name of its own (DNS rebinding) has another one.
bool is_loopback_host(absl::string_view host_header);

}  // namespace signalbox::channel
