// SPDX-License-Identifier: Apache-2.0
//
// The drop-in channel: a grpc::ChannelInterface that routes and picks each call, and gives the call
// to the picked connection. Every generated stub works with it unchanged.
//
//   stub ─▶ [GrpcChannel] ─▶ Router::pick ─┬ complete ─▶ a call of the connection's own channel
//                                          ├ queue ────▶ queued_call, until a publication
//                                          └ fail, drop ▶ a call that has failed already
//
// Invariants
//   D1  A picked call holds its lb::Pick until the call ends, and no longer.
//   D2  A call that certainly never reached a transport is picked again instead of failed. A call
//       that its route's retry policy covers is made again after a back-off, until the server has
//       responded.
//   D3  A call's interceptors are made once and run once, in the application's context, whether or
//       not the call waits, and however often it is picked.
//   D4  The channel may be destroyed while calls run or wait: they go on. Once the wait list is
//       closed, sent calls run to their end, and waiting and new calls fail.
//   D5  The cookie that a pick sets for its session is in the metadata of the attempt that the
//       application gets, and in the metadata of no other attempt (A55-21).

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <grpcpp/impl/channel_interface.h>
#include <grpcpp/support/client_interceptor.h>

#include "channel/grpc/connectivity_source.hpp"
#include "channel/pick/wait_list.hpp"
#include "lb/pick/router.hpp"
#include "lb/route/retry.hpp"
#include "messages/counting/striped.hpp"

namespace signalbox::channel {

/// The channel's own counters; the router counts picks, and CallStats counts attempts.
class ChannelCounts {
 public:
  void count_queued() const { counters_.add(0, 1); }

  void count_repicked() const { counters_.add(1, 1); }

  /// Calls that had to wait.
  std::int64_t queued() const { return counters_.sum(0); }

  /// Calls that were picked again because no server had processed them.
  std::int64_t repicked() const { return counters_.sum(1); }

 private:
  StripedCounters<2> counters_;
};

struct GrpcChannelOptions {
  lb::Router router;
  std::shared_ptr<WaitList> waiting;
  std::shared_ptr<ConnectivitySource> connectivity;
  std::shared_ptr<const ChannelCounts> counts;
  std::string target;  ///< "xds:///orders": peer() of a call without a server.
  /// The application's interceptors, outermost first.
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  /// Shared by the channels of a target; null: no throttling.
  std::shared_ptr<lb::RetryThrottle> throttle = nullptr;
  /// Larger requests are not retried by policy.
  std::size_t retry_buffer_bytes = std::size_t{256} << 10U;
  /// Retries avoid endpoints that the call has tried, even if the route does not ask for it.
  bool retry_elsewhere = true;
  /// The :authority of calls without one from their context or their route; empty: the
  /// connection's, GrpcConnection::authority().
  std::string authority = {};
  /// The target is invalid: the state is TRANSIENT_FAILURE, even after the runtime's end.
  bool is_wrong_target = false;
};

/// All connections of the router must be actors::GrpcConnections.
std::shared_ptr<grpc::ChannelInterface> make_grpc_channel(GrpcChannelOptions options);

}  // namespace signalbox::channel
