// SPDX-License-Identifier: Apache-2.0
//
// abandoned_channel — the end of a gRPC channel that may be connecting.
//
//   connector, ADS ─▶ abandon(channel) ─┬▶ not connecting: destroyed at once
//                                       └▶ connecting: kept until it is not, then destroyed
//
// gRPC 1.51 forgets the transport of a channel that is destroyed between the TCP connection and the
// server's SETTINGS: the connection stays established until the process ends, and nothing of gRPC
// serves it. A channel that has left CONNECTING is destroyed with its connection.
//
// A channel leaves CONNECTING when its attempt succeeds or fails, at the latest after its own
// connect timeout (connection_arguments). Until then it has an Interest in the poller: it hears the
// server also after the last runtime, and gRPC does not shut down before the channel has ended.

#pragma once

#include <memory>

#include <grpcpp/channel.h>

namespace signalbox::actors {

/// Gives up the caller's share of the channel; thread-safe, never blocks. Null: nothing happens.
/// Precondition: no lock is held that is taken where what the channel owns is destroyed.
void abandon(std::shared_ptr<grpc::Channel> channel);

}  // namespace signalbox::actors
