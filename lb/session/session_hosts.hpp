// SPDX-License-Identifier: Apache-2.0
//
// SessionHosts — whether a leaf cluster has the host of a session, and whether calls may go there.
//
//   HostSlots ─▶ Seats::hosts() ─▶ [SessionHosts] ─▶ SessionHomes, for tiered's picker
//
// The HostPromise says what override_host's picker of the leaf would do. If it is kUnheld or
// better, a call that is sent to the leaf goes to the cookie's host, or waits for that host.

#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace signalbox::lb {

/// The best that a cluster can do for a call to the hosts of a cookie; later values are better
/// (A75-41 … 48).
enum class HostPromise : std::uint8_t {
  kUnknown,     ///< No endpoint has the address, or only a DRAINING one that takes no sessions.
  kUnfit,       ///< Known, but unfit or in TRANSIENT_FAILURE.
  kUnheld,      ///< The call waits until a subchannel is made and connected.
  kConnecting,  ///< The call waits for the connection attempt.
  kIdle,        ///< The call starts a connection attempt, and waits.
  kReady        ///< The host takes a call at once.
};

/// Lives as long as the picker that it belongs to. Picks call it, so it takes no lock and allocates
/// nothing.
class SessionHosts {
 public:
  virtual ~SessionHosts() = default;

  /// The best promise among these hosts: "ip:port", or several separated by commas (A61).
  virtual HostPromise promise(absl::string_view hosts) const = 0;
};

}  // namespace signalbox::lb
