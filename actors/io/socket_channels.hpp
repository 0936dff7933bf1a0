// SPDX-License-Identifier: Apache-2.0
//
// SocketChannels — makes a gRPC channel from a connected socket.
//
//   socket_dialer: a socket ─▶ [SocketChannels] ─▶ grpc::Channel ─▶ GrpcConnection
//
// Such a channel is a transport and a few filters, without name resolution, load balancing and
// reconnection. It costs half the memory and a third of the CPU time of a channel that connects.
//
// Invariants
//   F1  The channel's connectivity API cannot be used: gRPC 1.51 logs an error, or ends the
//       process. SocketLine has the state.
//   F2  gRPC owns the socket, and closes it when the channel ends.
//   F3  ClientContext::peer() of a call is as on a channel that connects: the endpoint's address
//       ("ipv4:1.2.3.4:80"), or, as long as no transport has the call, the channel's target.
//   F4  A channel sends no call credentials, and does not refuse them. channel/grpc/call_binder
//       does.

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/channel_arguments.h>

#include "actors/io/sockets.hpp"
#include "actors/io/transport_name.hpp"
#include "messages/ids.hpp"

namespace signalbox::actors {

class SocketChannels {
 public:
  /// `arguments`: those of all channels. Returns UNIMPLEMENTED if channels cannot be made from
  /// sockets with this build of gRPC, and RESOURCE_EXHAUSTED if the system has not let signalbox
  /// find out: a later attempt may succeed. Precondition: the caller holds a GrpcPoller::Hold.
  static absl::StatusOr<SocketChannels> make(const grpc::ChannelArguments& arguments);

  /// A channel on the socket. Null: the channel's peer could not be named (F3); the socket is
  /// closed. Thread-safe.
  std::shared_ptr<grpc::Channel> channel(Descriptor socket, const Address& address) const;

 private:
  SocketChannels(const grpc::ChannelArguments& arguments, TransportName place)
      : arguments_(arguments), place_(place) {}

  grpc::ChannelArguments arguments_;
  TransportName place_;
};

/// The result of send_headers().
struct SentHeaders {
  std::optional<bool> were_taken;  ///< nullopt: the transport did not answer in time.
  std::string peer;                ///< gRPC's name for the peer: grpc_peer(), or the target.
};

/// Sends nothing but the headers of `call`, which is not started, and then cancels it. Blocks for
/// at most `limit` until the transport has taken or refused them. Releases `call`, and shuts down
/// its `queue`, which has no other call.
SentHeaders send_headers(grpc_call* call,
                         grpc::CompletionQueue& queue,
                         std::chrono::milliseconds limit);

/// The gRPC target that names `address` and nothing else.
std::string grpc_target(const Address& address);

/// Whether gRPC's name for the peer of a call is a grpc_target(): the call has no transport.
bool is_grpc_target(const std::string& peer);

/// gRPC's name for the peer at `address`, such as "ipv4:1.2.3.4:80".
std::string grpc_peer(const Address& address);

}  // namespace signalbox::actors
