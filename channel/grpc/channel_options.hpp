// SPDX-License-Identifier: Apache-2.0
//
// GrpcChannelOptions — the parts and settings of a drop-in channel. ChannelCounts — the counters
// that the drop-in channels of a runtime share.
//
//   Runtime ─▶ [GrpcChannelOptions] ─▶ grpc_channel ─▶ call_binder, which keeps them

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/support/client_interceptor.h>

#include "channel/grpc/connectivity_source.hpp"
#include "channel/pick/traced_call.hpp"
#include "channel/pick/wait_list.hpp"
#include "lb/pick/router.hpp"
#include "lb/route/retry.hpp"
#include "messages/counting/caller_stats.hpp"
#include "messages/counting/striped.hpp"

namespace signalbox::channel {

/// Counters that all channels of a runtime share. Other parts count more: the router counts picks,
/// CallStats attempts, and CallerStats calls.
class ChannelCounts {
 public:
  void count_queued() const { counters_.add(0, 1); }

  void count_repicked() const { counters_.add(1, 1); }

  /// How often a call began to wait: its pick gave it no connection, or the picked connection died
  /// before the call was sent.
  std::int64_t queued() const { return counters_.sum(0); }

  /// How often a call was picked again because no server had processed it.
  std::int64_t repicked() const { return counters_.sum(1); }

 private:
  StripedCounters<2> counters_;
};

struct GrpcChannelOptions {
  lb::Router router;
  std::shared_ptr<WaitList> waiting;
  std::shared_ptr<ConnectivitySource> connectivity;
  std::shared_ptr<const ChannelCounts> counts;
  /// The channel's target, such as "xds:///orders". ClientContext::peer() returns the target for a
  /// call that has no server.
  std::string target;
  /// The application's interceptors, outermost first.
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  /// The throttle of retries, which the channels of a target share; null: no throttling.
  std::shared_ptr<lb::RetryThrottle> throttle = nullptr;
  /// The most bytes of a request that a retry policy may send again.
  std::size_t retry_buffer_bytes = std::size_t{256} << 10U;
  /// True: retries avoid endpoints that the call has tried. False: only retries of routes with the
  /// retry_host_predicate previous_hosts do.
  bool retry_elsewhere = true;
  /// The :authority of a call that gets none from its context or its route. Empty: such a call gets
  /// GrpcConnection::authority().
  std::string authority = {};
  /// Counts the target's calls as the application sees them; null: they are not counted.
  std::shared_ptr<const CallerStats> callers = nullptr;
  /// The program's observer of the target's calls; null: none.
  std::shared_ptr<const CallTracing> tracing = nullptr;
  /// True: the target is invalid, so GetState() returns TRANSIENT_FAILURE, even after the runtime's
  /// end.
  bool is_wrong_target = false;
};

}  // namespace signalbox::channel
