// SPDX-License-Identifier: Apache-2.0
//
// Connector — how a subchannel gets a connection, whatever the transport is.
//
//   subchannel actor ─▶ connect(peer) ─▶ Attempt (hold it while the connection is wanted)
//                    ◀─ connected | failed, later closed; on a thread of the connector
//
// Invariants
//   C1  Of an attempt, exactly one of `connected` and `failed` is called, and `closed` at most
//       once, after `connected`; none of them from inside connect().
//   C2  Once ~Attempt has returned, nothing of that attempt is called any more. ~Attempt waits for
//       a callback that is running on another thread; so callbacks are short, and take no lock
//       that is held where attempts are destroyed (sending a message to an actor is fine).
//   C3  Dropping the Attempt lets go of the connection: no new call should be put on it, and calls
//       in flight on it run to their end.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

#include "messages/cluster_settings.hpp"
#include "messages/ids.hpp"
#include "messages/pick.hpp"

namespace signalbox::actors {

/// Whom to connect to, and how. Attempts for equal peers may share a connection.
struct Peer {
  Address address;
  UpstreamTlsPtr tls = nullptr;  ///< Null: the control plane says nothing of security (A29).
  /// The target's authority, which a TLS handshake asks for; empty: the address.
  std::string authority = {};
};

class Connector {
 public:
  /// What an attempt hears. A connection that was closed is never connected again.
  struct Events {
    std::function<void(ConnectionPtr)> connected;
    std::function<void(absl::Status)> failed;
    std::function<void(absl::Status)> closed;
  };

  /// The wish for one connection. Destroy it to give the wish, or the connection, up.
  class Attempt {
   public:
    Attempt() = default;
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;
    virtual ~Attempt() = default;
  };

  virtual ~Connector() = default;

  /// Begins to connect, or has it wait for its turn; thread-safe, never blocks. The connection is
  /// secured as `peer` says, or there is none. `failed` is called at the latest when `timeout` is
  /// over, which counts from the turn. The connector outlives its attempts.
  virtual std::unique_ptr<Attempt> connect(const Peer& peer, Duration timeout, Events events) = 0;
};

}  // namespace signalbox::actors
