// SPDX-License-Identifier: Apache-2.0
//
// abandoned_channel — the end of a gRPC channel that may be connecting.
//
//   connector, streams ─▶ abandon(channel) ─┬▶ neither IDLE nor CONNECTING: destroyed at once
//                                           └▶ else: kept until it is neither, then destroyed
//
// A channel that stays IDLE for a second will not connect any more, so it is destroyed as well.
//
// gRPC 1.51 forgets the transport of a channel that is destroyed between the TCP connection and the
// server's SETTINGS. The connection then stays established until the process ends, and gRPC no
// longer serves it. Destroying a channel that has left CONNECTING also closes its connection.
//
// A channel leaves CONNECTING when its attempt succeeds or fails, at the latest after the channel's
// own connect timeout (connection_arguments). Until then a Keeper (abandoned_channel.cpp) owns the
// channel, and an Interest in the poller. So the server's bytes are read even after the last
// runtime has ended, and gRPC does not shut down before the channel has ended.

#pragma once

#include <memory>

#include <grpcpp/channel.h>

namespace signalbox::actors {

/// Drops the caller's reference to the channel; thread-safe, never blocks. Null: nothing happens.
/// Precondition: the caller holds no lock that is taken when objects of the channel are destroyed.
void abandon(std::shared_ptr<grpc::Channel> channel);

}  // namespace signalbox::actors
