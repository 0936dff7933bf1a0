// SPDX-License-Identifier: Apache-2.0
//
// EndpointCalls — counts the ends of one endpoint's calls, if the program asks for it
// (MetricsDetail::kEndpoint).
//
//   cluster_impl ─▶ EndpointCounters ─▶ EndpointCalls, kept by trackers ─▶ add(code)
//                                        └──────────▶ metrics/exporter ─▶ Prometheus
//
// The functions of EndpointCounters are called when a configuration comes, never on the path of
// calls. Thread-safe.

#pragma once

#include <memory>

#include "messages/counting/call_stats.hpp"
#include "messages/counting/striped.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// The counters are in the order of place_of_code().
using EndpointCalls = StripedCounters<kStatusCodes>;
using EndpointCallsPtr = std::shared_ptr<const EndpointCalls>;

class EndpointCounters {
 public:
  virtual ~EndpointCounters() = default;

  /// The counters of the calls to this address. Repeated calls return the same object as long as it
  /// is held. Null: too many endpoints have counters already, so the calls to this endpoint are
  /// counted in other_endpoints().
  virtual EndpointCallsPtr endpoint(const ClusterName& cluster, const Address& address) = 0;

  /// The counters of the calls to all other endpoints of the cluster. Never null.
  virtual EndpointCallsPtr other_endpoints(const ClusterName& cluster) = 0;
};

}  // namespace signalbox
