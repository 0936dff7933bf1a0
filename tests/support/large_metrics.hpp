// SPDX-License-Identifier: Apache-2.0
//
// large_metrics — the metrics of a runtime that calls many clusters, for tests and benchmarks.
//
//   large_metrics(targets, clusters, endpoints) ─▶ LargeMetrics::instruments ─▶ exporter

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "metrics/instruments.hpp"

namespace signalbox::testing {

struct LargeMetrics {
  std::shared_ptr<metrics::Instruments> instruments;
  /// The endpoints' counters, held as policies hold them. Counters that nothing holds may be erased
  /// when another endpoint needs counters.
  std::vector<EndpointCallsPtr> endpoints;
};

/// Every target calls every cluster. Each cluster has two priorities, and has seen calls of five
/// codes, connections, failovers, sessions, drops and probes. The first 200 endpoints have counters
/// of calls.
inline LargeMetrics large_metrics(std::size_t targets,
                                  std::size_t clusters,
                                  std::size_t endpoints,
                                  metrics::LatencyScale scale) {
  constexpr auto kTook = std::chrono::milliseconds(30);
  LargeMetrics made{std::make_shared<metrics::Instruments>(std::chrono::steady_clock::now, scale),
                    {}};
  metrics::Instruments& instruments = *made.instruments;
  for (std::size_t target = 0; target < targets; ++target) {
    const auto callers = instruments.caller_stats("xds:///target-" + std::to_string(target));
    for (int code = 0; code < 5; ++code)
      callers->count(code, kTook);
    callers->record_wait({DelayReason::kConnecting, 0}, kTook);
    callers->record_wait({DelayReason::kResolving}, kTook);
  }
  for (std::size_t i = 0; i < clusters; ++i) {
    const ClusterName cluster("shop-orders-eu-west-" + std::to_string(i));
    instruments.observe(PriorityActive{cluster, 0});
    instruments.observe(FailedOver{cluster});
    instruments.observe(FailoverEnded{cluster, kTook});
    const auto half = static_cast<std::int64_t>(endpoints / 2);
    for (std::uint32_t priority = 0; priority < 2; ++priority) {
      EndpointsCounted counted{cluster, {half}};
      counted.priority = priority;
      instruments.observe(counted);
    }
    instruments.observe(EndpointsChanged{cluster, endpoints, 0});
    instruments.observe(ConnectionAttempted{cluster, true});
    instruments.observe(ConnectionAttempted{cluster, false});
    instruments.observe(ConnectionLost{cluster});
    instruments.observe(HealthProbed{cluster, true});
    instruments.observe(SessionsHeld{cluster, 1});
    instruments.observe(SessionsSwept{cluster, 1});
    instruments.add_connections(cluster, static_cast<int>(endpoints));
    instruments.drops(cluster, "lb")->add(0, 1);
    instruments.breaker_drops(cluster)->add(0, 1);
    for (std::size_t target = 0; target < targets; ++target) {
      const auto stats = instruments.call_stats("xds:///target-" + std::to_string(target), cluster);
      stats->count_started();
      for (int code = 0; code < 5; ++code)
        stats->count_completed(code);
      stats->record_duration(kTook);
      stats->count_pick(PickOutcome::kComplete);
      stats->count_affinity(AffinityResult::kHit);
      stats->count_retry(RetryResult::kRetried);
    }
    for (std::size_t n = 0; n < endpoints; ++n) {
      const std::string host = "10.0." + std::to_string(i % 256) + "." + std::to_string(n % 256);
      if (auto calls = instruments.endpoint(cluster, Address(host + ":8080")))
        made.endpoints.push_back(std::move(calls));
    }
    instruments.other_endpoints(cluster)->add(0, 1);
  }
  return made;
}

}  // namespace signalbox::testing
