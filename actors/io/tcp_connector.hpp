// SPDX-License-Identifier: Apache-2.0
//
// TcpConnector — TCP connections without traffic: they show whether an endpoint accepts
// connections.
//
//   subchannel actor ─▶ connect ─▶ [one thread, epoll] ─▶ a socket that is never written to
//                               ◀─ connected | failed, later closed
//
// For data planes with connections of their own: a pick then only gives an address.
//
// Invariants
//   P1  No byte is ever written to an endpoint, and its bytes are not read.
//   P2  Servers close idle connections. A connection that was closed in order after at least kStood
//       is made anew before `closed` is called. The connection is lost only if that fails.
//   P3  An endpoint that closes at once is not connected to again before kStood is over. So a
//       balancer that accepts connections without having backends costs one attempt a second.
//   P4  Sockets belong to the thread alone; callers post orders to it.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

#include "actors/io/connector.hpp"

namespace signalbox::actors {

/// TCP's own keepalive, in whole seconds: a vanished peer is lost after time + timeout.
struct TcpKeepalive {
  std::chrono::seconds time{};
  std::chrono::seconds timeout{};
};

struct TcpConnectorOptions {
  std::optional<TcpKeepalive> keepalive = std::nullopt;
  /// Destroys a connection without references, once it is not in use. Any thread, even after the
  /// connector's end.
  std::function<void(std::unique_ptr<const Tracked>)> retire;
};

class TcpConnector final : public Connector {
 public:
  /// The time in P2 and P3.
  static constexpr std::chrono::seconds kStood{1};

  /// An error when the system has no open files left.
  static absl::StatusOr<std::unique_ptr<TcpConnector>> start(TcpConnectorOptions options);

  /// Joins the thread, so it must not be called from a callback.
  ~TcpConnector() override;

  /// The address is "1.2.3.4:80" or "[::1]:80". TLS of `peer` is the data plane's business: these
  /// connections carry no data to secure.
  std::unique_ptr<Attempt> connect(const Peer& peer, Duration timeout, Events events) override;

 private:
  class Loop;

  explicit TcpConnector(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

  const std::shared_ptr<Loop> loop_;
};

}  // namespace signalbox::actors
