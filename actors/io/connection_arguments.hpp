// SPDX-License-Identifier: Apache-2.0
//
// connection_arguments — how the gRPC channel that is a connection is set up.
//
//   RuntimeOptions::channel_arguments ─▶ check_arguments() ─▶ [connection_arguments()] ─▶ channel
//
// What makes of a channel one connection and no more is ours alone. Everything else is the user's,
// and ours where the user says nothing.

#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include <grpcpp/support/channel_arguments.h>

#include "messages/ids.hpp"

namespace signalbox::actors {

/// How a connection whose peer is gone without a word is found (gRFC A8). gRPC sends no pings that
/// are closer than a second.
struct Keepalive {
  std::chrono::milliseconds time{};  ///< Of silence, before a ping is sent.
  std::chrono::milliseconds timeout = std::chrono::seconds(20);  ///< For its answer.
  bool without_calls = false;
};

/// An error if the user sets what is ours alone: it names that.
absl::Status check_arguments(const grpc::ChannelArguments& said);

/// The user's GRPC_ARG_DEFAULT_AUTHORITY; empty: none.
std::string default_authority(const grpc::ChannelArguments& said);

/// The authority for a TLS handshake on behalf of `authority`: gRPC sends the host in it as the
/// server's name (SNI). Where that host is no DNS name, an address above all, it is a name that is
/// reserved for standing for nothing, because RFC 6066 allows no address there, and gRPC cannot be
/// told to send no name.
std::string handshake_authority(const std::string& authority);

/// Of a channel that may take so long to connect. Its calls bring their authority: `authority` is
/// for handshakes. Precondition: check_arguments(said) is OK.
grpc::ChannelArguments connection_arguments(const grpc::ChannelArguments& said,
                                            const std::optional<Keepalive>& keepalive,
                                            const std::string& authority,
                                            Duration timeout);

}  // namespace signalbox::actors
