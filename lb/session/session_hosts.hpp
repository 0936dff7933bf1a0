// SPDX-License-Identifier: Apache-2.0
//
// SessionHosts — whether a leaf cluster has the host of a session, and whether calls may go there.
//
//   HostSlots ─▶ Seats::hosts() ─▶ [SessionHosts] ─▶ SessionHomes, for tiered's picker
//
// The promise says what the picker would do: a call that is sent to the leaf with the best promise
// goes to its host there, or waits for it, if that promise is kUnheld or better.

#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace signalbox::lb {

/// The best that a cluster can do for a call to the hosts of a cookie; later values are better
/// (A75-41 … 48).
enum class HostPromise : std::uint8_t {
  kUnknown,     ///< No endpoint has the address.
  kUnfit,       ///< An endpoint has the address, but may get no call or cannot be reached.
  kUnheld,      ///< A call waits until the host is acquired and connected.
  kConnecting,  ///< A call waits for the connection.
  kIdle,        ///< A call asks for the connection, and waits.
  kReady        ///< The host takes a call at once.
};

/// Lives as long as its picker. Picks call it, so it takes no lock and allocates nothing.
class SessionHosts {
 public:
  virtual ~SessionHosts() = default;

  /// The best promise for these hosts: "ip:port", or several with commas between them (A61).
  virtual HostPromise promise(absl::string_view hosts) const = 0;
};

}  // namespace signalbox::lb
