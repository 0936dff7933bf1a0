// SPDX-License-Identifier: Apache-2.0
//
// AdminAddress — the address of a runtime's admin server, always on this machine.
//
//   "unix:/run/orders/admin.sock", "127.0.0.1:9901" ─▶ [parse] ─▶ AdminServer, `signalbox dump`

#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace signalbox::channel {

/// A unix socket in the file system. Users with write permission on the socket have access.
struct UnixAddress {
  std::string path;  ///< Not normalised; at most 107 bytes.

  friend bool operator==(const UnixAddress&, const UnixAddress&) = default;
};

/// A port of the loopback interface. Every process of the machine has access.
struct LoopbackAddress {
  std::string ip;  ///< An address in 127.0.0.0/8, or "::1".
  std::uint16_t port = 0;

  friend bool operator==(const LoopbackAddress&, const LoopbackAddress&) = default;
};

using AdminAddress = std::variant<UnixAddress, LoopbackAddress>;

/// Parses "unix:PATH" or "HOST:PORT", where HOST is localhost (127.0.0.1), 127.x.x.x or [::1].
/// INVALID_ARGUMENT names what was found and what is allowed.
absl::StatusOr<AdminAddress> parse_admin_address(absl::string_view text);

/// The address as parse_admin_address() reads it.
std::string to_string(const AdminAddress& address);

/// Whether a request's Host header names this machine's loopback. A hostile web page can point its
/// own DNS name to the loopback (DNS rebinding) and so reach the server, but the browser then sends
/// that name as the Host.
bool is_loopback_host(absl::string_view host_header);

}  // namespace signalbox::channel
