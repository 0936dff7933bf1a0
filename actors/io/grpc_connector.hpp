// SPDX-License-Identifier: Apache-2.0
//
// GrpcConnector — connections that are gRPC channels: one grpc::Channel each, made when wanted.
//
//   subchannel actor ─▶ connect ─▶ [pool: peer ─▶ grpc::Channel] ─▶ GrpcConnection ─▶ calls
//                               ◀─ connectivity, heard by the poller's functors
//
// A grpc::Channel serves here as one TCP connection and no more: it has one address, no policy,
// no retries and no back-off that anyone waits for. Once it fails, or leaves READY, it is given
// up and never picked again; when to try again is the subchannel's business.
//
// Invariants
//   G1  At most one living transport that an attempt wants per address, TLS and, where credentials
//       may look at it, name of the server: attempts made at the same time, or while the connection
//       lives, share it. (All other settings are the connector's.)
//   G2  A GrpcConnection is handed to `retire` when nobody holds its pointer any more; whoever
//       retires destroys it once in_use() is false.
//   G3  Many attempts at once take turns (attempt_turns.hpp): ten thousand endpoints that come, or
//       go, together cost neither all CPU nor the memory of ten thousand half-made channels.
//   G4  A target is written "ipv4:///a:p", and a peer that was reached "ipv4:a:p": so a call can
//       be proved to have never reached a transport (channel/grpc/retried_call).
//   G5  A connection that says nothing for keepalive's time and timeout is closed like one that was
//       reset; an attempt that is taken but never answered fails when its own time is over.
//   G6  Where TLS is asked for there is TLS as asked for, or no connection: `credentials` are never
//       used instead.
//   G7  A channel that is given up while it connects is kept until it has left CONNECTING
//       (abandoned_channel.hpp), also after the connector's end: gRPC would leak its connection.

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/grpcpp.h>

#include "actors/io/attempt_turns.hpp"
#include "actors/io/cluster_credentials.hpp"
#include "actors/io/connection_arguments.hpp"
#include "actors/io/connector.hpp"
#include "messages/counting/striped.hpp"

namespace signalbox::actors {

class GrpcConnection final : public Connection {
 public:
  GrpcConnection(Address address, std::shared_ptr<grpc::Channel> channel, std::string authority);
  ~GrpcConnection() override;
  GrpcConnection(const GrpcConnection&) = delete;
  GrpcConnection& operator=(const GrpcConnection&) = delete;

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  /// That channel's, which lives as long as this.
  grpc_channel* c_channel() const { return c_channel_; }

  /// Of calls that have none of their own. Whoever makes a call sets it: the channel does not.
  const std::string& authority() const { return authority_; }

  /// Whether the connection is up, as gRPC knows it at this moment: sooner than the snapshot.
  [[gnu::hot]] bool is_ready() const;

  /// The server has written the text of a GOAWAY in a status of its own: calls that end with this
  /// text do not wait for the connection to go away any more.
  void note_server_says_goaway() const {
    server_says_goaway_.store(true, std::memory_order_relaxed);
  }

  bool server_says_goaway() const { return server_says_goaway_.load(std::memory_order_relaxed); }

 private:
  // What a call reads, to which it is one of a thousand, stands in one line.
  alignas(kCacheLine) grpc_channel* const c_channel_;
  mutable std::atomic<bool> server_says_goaway_{false};
  const std::string authority_;
  const std::shared_ptr<grpc::Channel> channel_;
};

struct GrpcConnectorOptions {
  /// Of peers without TLS settings (A29). Null: insecure, and peers have no names.
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  /// Of the others; empty: they cannot be connected to.
  ClusterCredentials cluster_credentials = nullptr;
  grpc::ChannelArguments arguments;  ///< The user's; see check_arguments().
  AttemptLimits attempts = {};
  std::optional<Keepalive> keepalive = std::nullopt;  ///< nullopt: no pings.
  /// See G2. Any thread, and after the connector's end too: it owns what it needs.
  std::function<void(std::unique_ptr<const Tracked>)> retire;
};

class GrpcConnector final : public Connector {
 public:
  explicit GrpcConnector(GrpcConnectorOptions options);

  /// Waits for callbacks that are running; so it is not called from one. Connections may outlive
  /// the connector.
  ~GrpcConnector() override;

  std::unique_ptr<Attempt> connect(const Peer& peer, Duration timeout, Events events) override;

 private:
  class Pool;
  std::shared_ptr<Pool> pool_;
};

/// The target of a channel that leads to `address` alone.
std::string grpc_target(const Address& address);

/// How far a call came that failed.
enum class Reach {
  kNowhere,  ///< No server can have had anything of it.
  kRefused,  ///< A server had some of it, and says that it has looked at nothing of it.
  kServer,   ///< A server may have worked on it.
};

/// Whether gRPC names no transport that has `call`, which was made on a channel to a grpc_target().
/// It may have had one, if it was cancelled; gRPC cancels a call itself when a write fails.
bool has_no_transport(grpc_call* call);

/// Of the context's call, made on `connection`. `was_taken`: a transport may have had it before it
/// ended. Precondition: the call has its status, which is UNAVAILABLE.
Reach reach_of(grpc::ClientContext& context, const GrpcConnection& connection, bool was_taken);

/// Whether a server sent the status of the context's call. Otherwise gRPC made it.
/// Precondition: the call has its status, which is not OK.
bool is_from_server(grpc::ClientContext& context, Reach reach);

}  // namespace signalbox::actors
