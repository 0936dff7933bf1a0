// SPDX-License-Identifier: Apache-2.0
//
// Side — one side of a comparison: signalbox's drop-in channel ("ours"), or gRPC's own xds channel
// ("peer"), behind the same interface.
//
//   GRPC_XDS_BOOTSTRAP ─▶ [Side] ─▶ grpc::ChannelInterface ─▶ the same stub or load engine
//
// Both sides read the same bootstrap and have their default options, as for a user. SideOptions
// changes options of signalbox's side alone.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include <grpcpp/impl/channel_interface.h>

#include "signalbox/router.hpp"
#include "signalbox/runtime.hpp"
#include "tools/proto/orders.grpc.pb.h"
#include "xds/limits.hpp"

namespace signalbox::bench {

using Stub = demo::v1::Orders::Stub;

/// The method that the generated stub calls, for picks and calls that are made without the stub.
inline constexpr const char* kMethodPath = "/signalbox.demo.v1.Orders/Place";

struct Side {
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  std::unique_ptr<Runtime> runtime;  ///< Null on gRPC's side.
  std::shared_ptr<Router> router;    ///< Null on gRPC's side.
  std::shared_ptr<grpc::ChannelInterface> channel;
  std::unique_ptr<Stub> stub;  ///< Of `channel`.
};

/// Options of the runtime of signalbox's side.
struct SideOptions {
  bool counts_calls = true;  ///< False: MetricsDetail::kNone.
  /// True: EndpointTransport::kAssumed. No endpoint needs a socket, and no call can be made.
  bool assumes_connections = false;
  std::size_t scheduler_threads = 2;
  std::uint32_t standby_priorities = 0;
  std::size_t max_routes = xds::kMaxRoutes;
  std::string record;  ///< RuntimeOptions::record; empty: nothing is recorded.
};

/// Makes signalbox's side if `is_ours`, else gRPC's, which ignores the options.
absl::StatusOr<Side> make_side(bool is_ours, const std::string& target, const SideOptions& options);

/// Opens a channel to `target` on the same side.
std::shared_ptr<grpc::ChannelInterface> open_channel(const Side& side, const std::string& target);

/// The paths of picks: of the routes /bench.v1.Service<n>/Get. 0 routes: the calls' own method.
std::vector<std::string> paths_of(std::size_t routes);

/// Makes one wait_for_ready call.
grpc::Status call_once(Stub& stub);

/// Waits until at least `endpoints` connections to `port` are established, by any process. Returns
/// DEADLINE_EXCEEDED if they are not after two minutes.
absl::Status wait_for_connections(int endpoints, int port);

/// Waits until picks go by the endpoints' own load reports (weighted_round_robin), and for a moment
/// after that. Precondition: signalbox's side.
absl::Status wait_for_weights(const Side& side);

/// Makes calls like call_once() until wait_for_connections() would return, and for a moment after
/// that. A failed call is an error, and ends the warm-up.
absl::Status warm_up(Stub& stub, int endpoints, int port);

}  // namespace signalbox::bench
