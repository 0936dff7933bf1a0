// SPDX-License-Identifier: Apache-2.0
//
// Link — the transport of a client's session: it makes connections for the session's streams, in
// the client's manner.
//
//   AdsSession ─▶ open, close, send ─▶ [Link] ─▶ Connection ─▶ network
//              ◀─ opened, closed    ◀─        ◀─
//
// make_link() returns one of two kinds. Signalbox's makes a connection for each stream, at once.
// gRPC's keeps a channel: the stream and the channel each have a back-off (manner.hpp).

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "messages/xds_events.hpp"
#include "tests/fleet/connection.hpp"
#include "tests/fleet/manner.hpp"
#include "tests/support/fake_clock.hpp"

namespace signalbox::fleet {

class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link() = default;

  // The session's orders.
  virtual void open(std::uint64_t stream) = 0;
  virtual void close(std::uint64_t stream) = 0;
  virtual void send(std::uint64_t stream, std::string bytes) = 0;

  // From the network. `connection` is the connection's number.
  virtual void accepted(std::uint64_t connection) = 0;
  virtual void ended(std::uint64_t connection) = 0;
  virtual void received(std::uint64_t connection, std::string bytes) = 0;
};

struct LinkPorts {
  testing::FakeClock& clock;
  Network& network;
  std::size_t client = 0;
  std::uint64_t seed = 0;
  /// Takes the events of streams: AdsStreamOpened, AdsBytesReceived, AdsStreamClosed.
  std::function<void(const AdsSessionEvent&)> session;
};

std::unique_ptr<Link> make_link(Manner manner, LinkPorts ports);

}  // namespace signalbox::fleet
