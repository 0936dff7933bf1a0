// SPDX-License-Identifier: Apache-2.0
//
// GrpcAdsTransport — ADS over a generic gRPC byte stream; protobuf never comes here.
//
//   AdsTransport::open ─▶ a channel of its own per stream ─▶ one thread with a completion queue
//
// Each stream has a fresh channel, so that the session's back-off is the only one: gRPC's own
// would fail a stream at once while it waits. A stream counts as opened when its headers went out
// on a connected transport (gRFC A57). Credentials are asked for anew for each: changed
// certificates are in use with the next stream (A65).
//
// Keepalive pings find a server that is gone without a word (half-open): the stream is closed after
// keepalive_time + keepalive_timeout. A server that finds this too often (a GOAWAY that says
// too_many_pings) is pinged half as often from then on (A8), by this and all later streams.

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <grpcpp/support/channel_arguments.h>

#include "actors/io/ads_transport.hpp"
#include "actors/io/xds_credentials.hpp"

namespace signalbox::actors {

struct GrpcAdsOptions {
  std::string server_uri;  ///< A gRPC target: "127.0.0.1:18000", "dns:///xds.example:443".
  CredentialsSource credentials;
  grpc::ChannelArguments arguments;
  /// A response above this ends the stream with an error that says so; gRPC's own default of
  /// 4 MiB would stop large configurations for ever.
  int max_message_bytes = 64 << 20;
  /// Servers of gRPC allow no less than five minutes unless they are told to (A8).
  std::chrono::milliseconds keepalive_time = std::chrono::minutes(5);
  std::chrono::milliseconds keepalive_timeout = std::chrono::seconds(20);
};

std::shared_ptr<AdsTransport> make_grpc_ads_transport(GrpcAdsOptions options);

}  // namespace signalbox::actors
