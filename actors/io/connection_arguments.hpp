// SPDX-License-Identifier: Apache-2.0
//
// connection_arguments — the arguments of the gRPC channel that serves as one connection.
//
//   RuntimeOptions::channel_arguments ─▶ check_arguments() ─▶ [connection_arguments()] ─▶ channel
//
// The user must not set the arguments that only signalbox may set, most of which make a channel
// exactly one connection: check_arguments() refuses them. Two of the user's settings are replaced
// by the parameters of connection_arguments(): keepalive pings, if `keepalive` is set, and
// GRPC_ARG_DEFAULT_AUTHORITY. All other arguments are passed on. For flow control and channelz,
// signalbox sets defaults that the user can replace.

#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include <grpcpp/support/channel_arguments.h>

#include "messages/ids.hpp"

namespace signalbox::actors {

/// The settings of keepalive pings, which find out that a connection's peer has vanished (gRFC A8).
/// gRPC sends at most one ping a second.
struct Keepalive {
  /// A ping is sent when the peer has sent nothing for this time.
  std::chrono::milliseconds time{};
  /// The connection is closed when the peer sends nothing for this time after a ping.
  std::chrono::milliseconds timeout = std::chrono::seconds(20);
  bool without_calls = false;
};

/// Returns an error if the user's arguments `said` have one that only signalbox may set. The error
/// names the argument.
absl::Status check_arguments(const grpc::ChannelArguments& said);

/// The user's GRPC_ARG_DEFAULT_AUTHORITY; empty: not set.
std::string default_authority(const grpc::ChannelArguments& said);

/// The authority for the TLS handshake of a connection for `authority`. gRPC sends the host of the
/// handshake's authority as the server's name (SNI). RFC 6066 allows no address as that name, and
/// gRPC cannot be told to send no name. So an authority without a DNS name, such as an address, is
/// replaced by a reserved name.
std::string handshake_authority(const std::string& authority);

/// The arguments of a channel that may take `timeout` to connect. `authority` is only for
/// handshakes, because each call has an authority of its own. Precondition: check_arguments(said)
/// is OK.
grpc::ChannelArguments connection_arguments(const grpc::ChannelArguments& said,
                                            const std::optional<Keepalive>& keepalive,
                                            const std::string& authority,
                                            Duration timeout);

/// The arguments of a channel on a connected socket (socket_channels.hpp). It needs fewer: each
/// argument costs CPU time for every connection. Precondition: check_arguments(said) is OK.
grpc::ChannelArguments socket_arguments(const grpc::ChannelArguments& said,
                                        const std::optional<Keepalive>& keepalive);

/// The TCP_USER_TIMEOUT that gRPC gives a client's socket: with keepalive pings the pings' timeout;
/// nullopt: none. `arguments`: those of the channel.
std::optional<std::chrono::milliseconds> tcp_user_timeout(const grpc::ChannelArguments& arguments);

/// Why gRPC must make the connections itself: a channel on a connected socket would ignore one of
/// the user's arguments `said`, or the environment sets a proxy. Empty: signalbox may connect.
std::string why_grpc_must_connect(const grpc::ChannelArguments& said);

}  // namespace signalbox::actors
