// SPDX-License-Identifier: Apache-2.0
//
// GrpcLoadStreams — OpenRcaService/StreamCoreMetrics calls on the connections of a GrpcConnector.
//
//   watch() ─▶ [a stream for each watched connection: lb::LoadStreamCore ─▶ one call] ─▶ listeners
//
// The calls are not calls of the application: they have no pick, no retry policy and no deadline,
// and Tracked::in_use() of their connection does not count them. A call is made only while the
// connection is READY, because on a broken connection gRPC would connect again.
//
// A report has the limits of lb/pick/load_report. A longer one is refused before it is copied.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/io/load_streams.hpp"
#include "messages/counting/call_stats.hpp"
#include "messages/load_stream_events.hpp"

namespace signalbox::actors {

/// The caller must set both functions. They are called on the poller's thread, without a lock, and
/// must not throw.
struct GrpcLoadStreamsOptions {
  std::function<void(LoadReportResult result)> count_report;
  /// `kUnimplemented` is passed at most once for each connection.
  std::function<void(const Address& address, LoadStreamEnd how)> stream_ended;
  std::uint64_t seed = 0;
};

/// Connections that are passed to watch() must be GrpcConnections.
std::shared_ptr<LoadStreams> make_grpc_load_streams(GrpcLoadStreamsOptions options);

}  // namespace signalbox::actors
