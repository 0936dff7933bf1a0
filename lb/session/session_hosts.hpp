// SPDX-License-Identifier: Apache-2.0
//
// SessionHosts — whether a leaf cluster has the host of a session, and whether calls may go there.
//
//   override_host's picker ─▶ Seats::hosts() ─▶ [SessionHosts] ─▶ tiered's picker: in which leaf?
//
// What it says is what the picker would do: a call that is sent to the best leaf goes to its host
// there, or waits for it.

#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace signalbox {

/// What a cluster can do for the hosts of a cookie, the better the later (A75-41 … 48).
enum class HostPromise : std::uint8_t {
  kUnknown,     ///< Its endpoints do not have the address.
  kUnfit,       ///< They do, and no call may go there, or it cannot be reached.
  kUnheld,      ///< A call waits until it is acquired and connected.
  kConnecting,  ///< A call waits for it.
  kIdle,        ///< A call has it connected, and waits.
  kReady        ///< It takes a call at once.
};

/// Lives as long as the picker that it is of. Asked by picks: lock-free, allocates nothing.
class SessionHosts {
 public:
  virtual ~SessionHosts() = default;

  /// The best that is known of these: "ip:port", or several with commas between them (A61).
  virtual HostPromise promise(absl::string_view hosts) const = 0;
};

}  // namespace signalbox
