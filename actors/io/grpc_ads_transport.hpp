// SPDX-License-Identifier: Apache-2.0
//
// GrpcAdsTransport — ADS over a generic gRPC byte stream; protobuf never comes here.
//
//   AdsTransport::open ─▶ a channel of its own per stream ─▶ one thread with a completion queue
//
// Each stream has a fresh channel, so that the session's back-off is the only one: gRPC's own
// would fail a stream at once while it waits. A stream counts as opened when its headers went out
// on a connected transport (gRFC A57).

#pragma once

#include <memory>
#include <string>

#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "actors/io/ads_transport.hpp"

namespace signalbox::actors {

struct GrpcAdsOptions {
  std::string server_uri;  ///< A gRPC target: "127.0.0.1:18000", "dns:///xds.example:443".
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  grpc::ChannelArguments arguments;
  /// A response above this ends the stream with an error that says so; gRPC's own default of
  /// 4 MiB would stop large configurations for ever.
  int max_message_bytes = 64 << 20;
};

std::shared_ptr<AdsTransport> make_grpc_ads_transport(GrpcAdsOptions options);

}  // namespace signalbox::actors
