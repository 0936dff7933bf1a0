// SPDX-License-Identifier: Apache-2.0
//
// TcpConnector — TCP connections without traffic: they show whether an endpoint accepts
// connections.
//
//   subchannel actor ─▶ connect ─▶ [one thread, epoll] ─▶ a socket that is never written to
//                               ◀─ connected | failed, later closed
//
// It is for data planes that have connections of their own, and take only an address from a pick.
//
// Invariants
//   P1  No byte is ever written to an endpoint, and no byte from an endpoint is read.
//   P2  Servers close idle connections. So when a connection that lived for at least kStood is
//       closed without an error, the connector connects again, and calls `closed` only if the new
//       attempt fails. After any other end of a connection it calls `closed` at once.
//   P3  No new attempt to an endpoint that closes at once begins before kStood is over. So a
//       balancer that accepts connections without having backends costs one attempt a second.
//   P4  Only the connector's thread uses the sockets; callers post orders to that thread.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

#include "actors/io/connector.hpp"

namespace signalbox::actors {

/// TCP's own keepalive, in whole seconds: the connection to a vanished peer is lost after about
/// time + timeout.
struct TcpKeepalive {
  std::chrono::seconds time{};
  std::chrono::seconds timeout{};
};

struct TcpConnectorOptions {
  std::optional<TcpKeepalive> keepalive = std::nullopt;
  /// Destroys a connection after its last owner has released it, as soon as no call uses it. Called
  /// on any thread, even after the connector's end.
  std::function<void(std::unique_ptr<const Tracked>)> retire;
};

class TcpConnector final : public Connector {
 public:
  /// A connection that lived at least this long is made anew when the server closes it (P2). An
  /// address that closes a connection earlier gets no new attempt for this long (P3).
  static constexpr std::chrono::seconds kStood{1};

  /// Returns an error if the operating system has no file descriptor left for this process.
  static absl::StatusOr<std::unique_ptr<TcpConnector>> start(TcpConnectorOptions options);

  /// Joins the thread, so it must not be called from a callback.
  ~TcpConnector() override;

  /// The address is "1.2.3.4:80" or "[::1]:80". The TLS of `peer` is ignored, because these
  /// connections carry no data. The data plane secures its own connections.
  std::unique_ptr<Attempt> connect(const Peer& peer, Duration timeout, Events events) override;

 private:
  class Loop;

  explicit TcpConnector(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

  const std::shared_ptr<Loop> loop_;
};

}  // namespace signalbox::actors
