// SPDX-License-Identifier: Apache-2.0
//
// GrpcConnector — connections that are gRPC channels: one grpc::Channel each, made on demand.
//
//   subchannel actor ─▶ connect ─▶ [pool: peer ─▶ grpc::Channel] ─▶ GrpcConnection ─▶ calls
//                               ◀─ connectivity, from the poller's functors
//                               ◀─ socket_dialer, socket_channels (GrpcConnectorOptions::sockets)
//
// A grpc::Channel serves here as exactly one TCP connection. It has one address and no retries, and
// its back-off has no effect. Once it fails, or leaves READY, it is abandoned, and no later attempt
// gets it. The subchannel decides when to try again.
//
// Two makers of connections: gRPC connects, or the dialer connects a socket, from which gRPC makes
// a channel. Only plaintext connections are made from sockets. If a server waits for the client's
// preface, gRPC makes the connection, because only gRPC sends the preface.
//
// Invariants
//   G1  Attempts with equal address, TLS settings and server name share one connection, also one
//       that another attempt has made already. The server's name (Peer::authority) matters only
//       with TLS settings, or if GrpcConnectorOptions::credentials are set. All other settings
//       belong to the connector, and are therefore equal. A peer with a sole_user shares nothing,
//       unless the connection's limit of streams cannot become known.
//   G2  When the last owner of a GrpcConnection releases it, it is handed to `retire`, which
//       destroys it as soon as no call uses it (Tracked::in_use()).
//   G3  Many attempts at once take turns (attempt_turns.hpp). When ten thousand endpoints come or
//       go together, the attempts use neither all CPU time nor the memory of ten thousand half-made
//       channels.
//   G4  gRPC's name for the peer of a call is "ipv4:a:p" once a transport has the call, and the
//       channel's target, "ipv4:///a:p", before. So the name tells whether a call reached a
//       transport (channel/grpc/retried_call).
//   G5  With keepalive pings, a connection is closed when its peer has been silent for keepalive's
//       time and timeout together (a connection without calls only if Keepalive::without_calls is
//       set). If a server accepts a TCP connection but never answers, the attempt fails when its
//       own timeout is over.
//   G6  If a peer asks for TLS, its connection has exactly that TLS, or is not made. `credentials`
//       are never used instead.
//   G7  A channel that is abandoned while it connects is kept until it has left CONNECTING
//       (abandoned_channel.hpp), even after the connector's end. Otherwise gRPC would leak its
//       connection.
//   G8  A connection that was made from a socket is lost when the server ends it, or when a call, a
//       health check or a stream of load reports finds that its transport takes no calls any more
//       (GOAWAY; lost_connection). Its calls in flight run to their end.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include <grpcpp/grpcpp.h>

#include "actors/io/attempt_turns.hpp"
#include "actors/io/cluster_credentials.hpp"
#include "actors/io/connection_arguments.hpp"
#include "actors/io/connector.hpp"
#include "actors/io/socket_channels.hpp"
#include "actors/io/socket_dialer.hpp"
#include "messages/counting/striped.hpp"

namespace signalbox::actors {

class GrpcConnection final : public Connection {
 public:
  /// `authority`: see authority(); empty: the address.
  /// `line`: that of the socket from which the channel was made; null: gRPC has connected.
  /// `stream_limit`: see Connection::stream_limit().
  GrpcConnection(Address address,
                 std::shared_ptr<grpc::Channel> channel,
                 std::string authority,
                 std::shared_ptr<SocketLine> line = nullptr,
                 std::optional<std::uint32_t> stream_limit = std::nullopt);

  /// See Connector::with_lanes().
  GrpcConnection(std::shared_ptr<const GrpcConnection> first,
                 std::shared_ptr<const lb::StreamLanes> lanes);
  ~GrpcConnection() override;
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  /// The C channel of channel(); it lives as long as this object.
  grpc_channel* c_channel() const { return c_channel_; }

  /// The authority for calls that have none of their own. The caller sets it on each call, because
  /// the channel does not add it.
  absl::string_view authority() const { return authority_; }

  /// Whether the connection is up now, by the state of gRPC or of the socket, which is newer than
  /// the snapshot.
  [[gnu::hot]] bool is_ready() const;

  bool takes_calls() const override { return is_ready(); }

  /// The connections of which a call takes a stream before it uses one of them; null: calls use
  /// this connection, and take no stream.
  const lb::StreamLanes* lanes() const { return lanes_; }

  /// Whether the channel was made from a socket. Its connectivity API cannot be used (F1 of
  /// socket_channels.hpp), and it would drop call credentials (F4).
  bool is_socket() const { return line_ != nullptr; }

  /// Gives the connection up for new calls (G8). Precondition: is_socket().
  void lose() const { line_->lose(); }

  /// The connection's last owner has gone: no pick finds the connection. A connection with lanes
  /// owns the first one, which others may have, too.
  void let_go() const {
    if (line_ != nullptr && lanes_ == nullptr) line_->let_go();
  }

  /// After this time calls do not wait any more (server_says_goaway()). It is less than the longest
  /// wait of a call (lost_connection.cpp), because gRPC rounds times.
  static constexpr std::chrono::milliseconds kVainWait{900};

  /// Records that a call ended with the text of a GOAWAY and waited from `begun` until `now`, while
  /// the connection stayed READY. Time that several calls wait at once counts once. Precondition:
  /// not is_socket(), because a connection from a socket shows a real GOAWAY only when it is asked.
  void record_vain_wait(Instant begun, Instant now) const;

  /// Records why the connection is lost, as a word of lb::disconnect_reason(). gRPC tells the
  /// reason only to calls. So it stays unknown if the connection ends without calls, or before its
  /// first call has ended. Only the first reason is kept.
  void record_loss(const char* reason) const {
    const char* none = nullptr;
    first_->loss_.compare_exchange_strong(none, reason, std::memory_order_relaxed);
  }

  /// Why the connection is lost (record_loss()); null: not known.
  const char* loss() const { return first_->loss_.load(std::memory_order_relaxed); }

  /// Whether calls have waited for kVainWait in all (record_vain_wait()). Then the text of a GOAWAY
  /// is from a status of the server's own.
  bool server_says_goaway() const {
    return vain_wait_.load(std::memory_order_relaxed) >= kVainWait.count();
  }

 private:
  absl::string_view shown_authority() const {
    const std::string& own = own_authority_.str();
    return own.empty() ? address().str() : own;
  }

  const SharedText own_authority_;  ///< Empty: the address is the authority.
  // Fields that a call reads share one cache line.
  alignas(kCacheLine) grpc_channel* const c_channel_;
  SocketLine* const line_;
  const lb::StreamLanes* const lanes_;
  const absl::string_view authority_;  ///< Points into own_authority_ or the address.
  // Not read by calls that succeed.
  mutable std::atomic<std::int64_t> vain_wait_{0};     ///< In milliseconds.
  mutable std::atomic<std::int64_t> waited_until_{0};  ///< Of the latest vain wait; milliseconds.
  mutable std::atomic<const char*> loss_{nullptr};
  const GrpcConnection* const first_;  ///< This connection; with lanes, the one that it leads to.
  const std::shared_ptr<grpc::Channel> channel_;
  const std::shared_ptr<const void> owned_;  ///< Owns line_; with lanes, lanes_ and the first.
};

struct GrpcConnectorOptions {
  /// The credentials for peers without TLS settings (A29). Null: plaintext; Peer::authority then
  /// has no effect on these peers.
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  /// The credentials for peers with TLS settings. Empty: connections to such peers fail.
  ClusterCredentials cluster_credentials = nullptr;
  grpc::ChannelArguments arguments;  ///< The user's arguments; see check_arguments().
  AttemptLimits attempts = {};
  std::optional<Keepalive> keepalive = std::nullopt;  ///< The settings of pings; nullopt: no pings.
  /// True: plaintext connections are made from sockets, if this build of gRPC allows it.
  bool sockets = false;
  /// The stream_limit() of connections that gRPC has made: gRPC does not tell the server's limit.
  /// nullopt: not known.
  std::optional<std::uint32_t> stream_limit = std::nullopt;
  /// Called if `sockets` is true and has no effect, with a text that says so, and the reason: in
  /// the constructor, or later on the poller's thread. If only resources were missing, such as
  /// descriptors, the text says when signalbox tries again, which it does up to ten times. Also
  /// called if environment_allows_sockets() does not understand the environment.
  std::function<void(const std::string& text)> no_sockets = nullptr;
  /// The pause before the first of these tries. Each further pause is twice as long.
  Duration sockets_again_after = std::chrono::seconds(1);
  /// After this time without a word, or half of the time that is left, gRPC connects to the server
  /// (SocketDialer::kSilence).
  std::chrono::milliseconds silence = SocketDialer::kSilence;
  /// Destroys a connection as soon as no call uses it (G2). Runs on any thread, even after the
  /// connector's end, so it must own everything that it needs.
  std::function<void(std::unique_ptr<const Tracked>)> retire;
};

class GrpcConnector final : public Connector {
 public:
  explicit GrpcConnector(GrpcConnectorOptions options);

  /// Waits for running callbacks, so it must not be called from a callback. Connections may outlive
  /// the connector.
  ~GrpcConnector() override;

  std::unique_ptr<Attempt> connect(const Peer& peer, Duration timeout, Events events) override;

  ConnectionPtr with_lanes(const ConnectionPtr& first,
                           std::shared_ptr<const lb::StreamLanes> lanes) override;

 private:
  class Pool;
  std::shared_ptr<Pool> pool_;
};

/// False: gRPC makes all connections, for the environment has SIGNALBOX_SOCKET_CONNECTIONS=false.
/// "true", the empty text, and no value have no effect; nor have other values, which are mistakes.
bool environment_allows_sockets();

}  // namespace signalbox::actors
