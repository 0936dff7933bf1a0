// SPDX-License-Identifier: Apache-2.0
//
// TcpConnector — connections that carry nothing: whether an endpoint takes TCP connections.
//
//   subchannel actor ─▶ connect ─▶ [one thread, epoll] ─▶ a socket that nobody writes to
//                               ◀─ connected | failed, later closed
//
// For data planes that have connections of their own: a pick then says only to which address.
//
// Invariants
//   P1  Not one byte is written to an endpoint, and what it says is not read.
//   P2  Servers close connections that are idle. One that was closed in order, and stood for
//       kStood, is made anew before anybody is told; only if that fails is it lost.
//   P3  An endpoint that closes at once is not connected to again before kStood is over: what takes
//       connections for nobody (a balancer without backends) costs one attempt a second.
//   P4  Sockets are the thread's alone; callers leave orders for it.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"

#include "actors/io/connector.hpp"

namespace signalbox::actors {

/// TCP's own, in whole seconds: a peer that is gone without a word is lost after time + timeout.
struct TcpKeepalive {
  std::chrono::seconds time{};
  std::chrono::seconds timeout{};
};

struct TcpConnectorOptions {
  std::optional<TcpKeepalive> keepalive = std::nullopt;
  /// Destroys a connection that nobody holds any more, once it is not in use. Any thread, and after
  /// the connector's end too.
  std::function<void(std::unique_ptr<const Tracked>)> retire;
};

class TcpConnector final : public Connector {
 public:
  /// P2, P3.
  static constexpr std::chrono::seconds kStood{1};

  /// An error where the system has no open files left.
  static absl::StatusOr<std::unique_ptr<TcpConnector>> start(TcpConnectorOptions options);

  /// Joins its thread; so it is not called from a callback.
  ~TcpConnector() override;

  /// The address is "1.2.3.4:80" or "[::1]:80". What `peer` says of TLS is the data plane's to do:
  /// nothing is said here that would have to be secured.
  std::unique_ptr<Attempt> connect(const Peer& peer, Duration timeout, Events events) override;

 private:
  class Loop;

  explicit TcpConnector(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

  const std::shared_ptr<Loop> loop_;
};

}  // namespace signalbox::actors
