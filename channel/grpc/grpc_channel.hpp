// SPDX-License-Identifier: Apache-2.0
//
// The drop-in channel: a grpc::ChannelInterface that routes and picks by itself, and then gives
// the call to the chosen connection. Every generated stub works with it unchanged.
//
//   stub ─▶ [GrpcChannel] ─▶ Router::pick ─┬ complete ─▶ a call of the connection's own channel
//                                          ├ queue ────▶ queued_call, until a publication
//                                          └ fail, drop ▶ a call that has failed already
//
// Invariants
//   D1  A call that was picked holds its lb::Pick until it ends, and no longer.
//   D2  A call that is known to never have reached a transport is picked again, not failed; so is,
//       after a back-off, one that its route's retry policy covers, until the server has answered.
//   D3  A call's interceptors are made once and run once, in the application's context, whether it
//       waits, and however often it is picked.
//   D4  Destroying the channel is safe while calls run or wait: they go on. Once the wait list is
//       closed, those that were sent run to their end, and those that wait, and new ones, fail.
//   D5  The cookie that a pick sets for its session is in the metadata of the attempt that answers
//       the application, and in the metadata of no other attempt (A55-21).

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

/// What the channel counts itself; the router counts picks, and CallStats attempts.
class ChannelCounts {
 public:
  void count_queued() const { counters_.add(0, 1); }

  void count_repicked() const { counters_.add(1, 1); }

  /// Calls that had to wait.
  std::int64_t queued() const { return counters_.sum(0); }

  /// Calls that were picked again because no server had looked at them.
  std::int64_t repicked() const { return counters_.sum(1); }

 private:
  StripedCounters<2> counters_;
};

struct GrpcChannelOptions {
  lb::Router router;
  std::shared_ptr<WaitList> waiting;
  std::shared_ptr<ConnectivitySource> connectivity;
  std::shared_ptr<const ChannelCounts> counts;
  std::string target;  ///< "xds:///orders": peer() of a call that has reached nobody.
  /// The application's own, outermost first.
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  /// Shared by the channels of a target; null: none.
  std::shared_ptr<lb::RetryThrottle> throttle = nullptr;
  /// Requests that are larger are not retried by policy.
  std::size_t retry_buffer_bytes = std::size_t{256} << 10U;
  /// Retries look for an endpoint that the call has not tried, where a route does not say so.
  bool retry_elsewhere = true;
  /// The :authority of calls that have none by their context or their route; empty: the endpoint's
  /// address.
  std::string authority = {};
  /// The target is none: the state is TRANSIENT_FAILURE, also after the runtime's end.
  bool is_wrong_target = false;
};

/// The connections that the router leads to must be actors::GrpcConnections.
std::shared_ptr<grpc::ChannelInterface> make_grpc_channel(GrpcChannelOptions options);

}  // namespace signalbox::channel
