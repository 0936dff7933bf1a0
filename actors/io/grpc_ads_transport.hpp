// SPDX-License-Identifier: Apache-2.0
//
// GrpcAdsTransport — ADS over a generic gRPC byte stream, without protobuf. Load reports (LRS) have
// the same kind of stream, with another method.
//
//   AdsTransport::open ─▶ a channel of its own per stream ─▶ one thread with a completion queue
//
// Each stream has a new channel, so the back-off of StreamPace is the only back-off. If streams
// shared a channel, a new stream would fail at once during the channel's own back-off. A stream
// counts as opened when its headers went out on a connected transport (gRFC A57). Each stream asks
// for credentials anew, so it uses changed certificates (A65).
//
// Keepalive pings find a server that vanished without closing the connection. The stream of such a
// server is closed after keepalive_time + keepalive_timeout. A server may complain of too many
// pings, and end the stream. If the stream's status then has the text that servers of gRPC's C core
// write, later streams of the transport ping half as often (A8).

#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <grpcpp/support/channel_arguments.h>

#include "actors/io/ads_transport.hpp"
#include "actors/io/connection_security.hpp"
#include "actors/io/xds_credentials.hpp"

namespace signalbox::actors {

/// How long a transport's destructor waits for a call to end, counted from the call's cancellation.
/// A call that takes longer ends later by itself. The wait is short, because the end of a runtime
/// waits for it.
inline constexpr std::chrono::milliseconds kMostWaitForCalls(500);

/// The gRPC methods of the two kinds of streams (GrpcAdsOptions::method).
inline constexpr char kAdsMethod[] =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
inline constexpr char kLrsMethod[] =
    "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";

struct GrpcAdsOptions {
  const char* method = kAdsMethod;
  std::string server_uri;  ///< A gRPC target: "127.0.0.1:18000", "dns:///xds.example:443".
  CredentialsSource credentials;
  ConnectionSecurity security = {};  ///< The security of `credentials`, for error texts.
  grpc::ChannelArguments arguments;
  /// The longest response. A longer one ends the stream with an error that names this limit. gRPC's
  /// default of 4 MiB would stop large configurations forever.
  int max_message_bytes = 64 << 20;
  /// The interval of keepalive pings. By default gRPC servers allow none below five minutes (A8).
  std::chrono::milliseconds keepalive_time = std::chrono::minutes(5);
  std::chrono::milliseconds keepalive_timeout = std::chrono::seconds(20);
};

std::shared_ptr<AdsTransport> make_grpc_ads_transport(GrpcAdsOptions options);

}  // namespace signalbox::actors
