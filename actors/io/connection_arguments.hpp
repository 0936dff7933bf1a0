// SPDX-License-Identifier: Apache-2.0
//
// connection_arguments — the arguments of the gRPC channel that serves as one connection.
//
//   RuntimeOptions::channel_arguments ─▶ check_arguments() ─▶ [connection_arguments()] ─▶ channel
//
// The arguments that make a channel exactly one connection are signalbox's alone. All others are
// the user's, with signalbox's defaults.

#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include <grpcpp/support/channel_arguments.h>

#include "messages/ids.hpp"

namespace signalbox::actors {

/// Finds a connection with a vanished peer (gRFC A8). gRPC sends no pings closer than a second.
struct Keepalive {
  std::chrono::milliseconds time{};                              ///< Silence before a ping.
  std::chrono::milliseconds timeout = std::chrono::seconds(20);  ///< For the ping's answer.
  bool without_calls = false;
};

/// An error that names an argument that only signalbox may set.
absl::Status check_arguments(const grpc::ChannelArguments& said);

/// The user's GRPC_ARG_DEFAULT_AUTHORITY; empty: not set.
std::string default_authority(const grpc::ChannelArguments& said);

/// The authority for a TLS handshake on behalf of `authority`. gRPC sends its host as the server's
/// name (SNI). A host that is no DNS name, such as an address, is replaced by a reserved name: RFC
/// 6066 allows no address there, and gRPC cannot be told to send no name.
std::string handshake_authority(const std::string& authority);

/// The arguments of a channel that may take `timeout` to connect. Its calls bring their own
/// authority: `authority` is for handshakes. Precondition: check_arguments(said) is OK.
grpc::ChannelArguments connection_arguments(const grpc::ChannelArguments& said,
                                            const std::optional<Keepalive>& keepalive,
                                            const std::string& authority,
                                            Duration timeout);

}  // namespace signalbox::actors
