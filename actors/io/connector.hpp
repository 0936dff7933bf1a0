// SPDX-License-Identifier: Apache-2.0
//
// Connector — makes a subchannel's connections, over any transport.
//
//   subchannel actor ─▶ connect(peer) ─▶ Attempt (hold it while the connection is wanted)
//                    ◀─ connected | failed, later closed; on a thread of the connector
//
// Invariants
//   C1  For each attempt that is not destroyed before, exactly one of `connected` and `failed` is
//       called. `closed` is called at most once, and only after `connected`. No callback runs
//       inside connect().
//   C2  After ~Attempt, no callback of that attempt runs. ~Attempt waits for a callback that runs
//       on another thread. So callbacks are short, and take no lock that is held where attempts are
//       destroyed (sending a message to an actor is fine).
//   C3  Destroying the Attempt releases the connection: no new call should use the connection, and
//       its calls in flight run to their end.

#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

#include "messages/cluster_settings.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox::lb {
class StreamLanes;
}

namespace signalbox::actors {

/// One attempt of one user of a connector.
struct UserId {
  std::uint64_t user = 0;  ///< Above 0.
  std::uint64_t attempt = 0;

  friend bool operator==(const UserId&, const UserId&) = default;
  friend auto operator<=>(const UserId&, const UserId&) = default;
};

/// The address to connect to, and the security of the connection. Attempts for equal peers may
/// share a connection.
struct Peer {
  Address address;
  /// The TLS settings; null: the control plane asks for no TLS (A29).
  UpstreamTlsPtr tls = nullptr;
  /// The target's authority, for the name in a TLS handshake; empty: the address.
  std::string authority = {};
  /// Set: only this attempt uses the connection, so its user can count the streams (A105). A
  /// connector may share the connection if it has no Connection::stream_limit().
  UserId sole_user = {};
  /// The subchannel that connects, for recordings; 0: unknown. Connectors do not read it.
  std::uint64_t holder = 0;
};

class Connector {
 public:
  /// The callbacks of an attempt. A closed connection is never connected again.
  struct Events {
    std::function<void(ConnectionPtr)> connected;
    std::function<void(absl::Status)> failed;
    std::function<void(absl::Status)> closed;
  };

  /// One wanted connection. Destroy it to abandon the attempt, or to release the connection.
  class Attempt {
   public:
    Attempt() = default;
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    virtual ~Attempt() = default;
  };

  virtual ~Connector() = default;

  /// Begins to connect, or queues the attempt for its turn; thread-safe, never blocks. A connection
  /// that can carry data is as secure as `peer` says; otherwise it is not made. If no connection is
  /// made, `failed` is called at the latest about `timeout` after the attempt's turn; to find the
  /// reason of a failure may take two seconds more. Precondition: the caller keeps the connector
  /// longer than its attempts.
  virtual std::unique_ptr<Attempt> connect(const Peer& peer, Duration timeout, Events events) = 0;

  /// A connection for pickers that leads to all connections in `lanes`, and until a call has chosen
  /// one of them is `first`. Connectors without streams return `first`.
  virtual ConnectionPtr with_lanes(
      const ConnectionPtr& first,
      // NOLINTNEXTLINE(performance-unnecessary-value-param): others keep it.
      std::shared_ptr<const lb::StreamLanes> /*lanes*/) {
    return first;
  }
};

}  // namespace signalbox::actors
