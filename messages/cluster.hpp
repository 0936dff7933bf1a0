// SPDX-License-Identifier: Apache-2.0
//
// Cluster — a validated CDS resource.
//
//   xds/parse/cluster ─▶ [Cluster] ─▶ cluster graph ─▶ XdsConfig ─▶ lb/tree/cluster_tree
//
// Source: gRFC A27, A37 (LOGICAL_DNS, aggregate), A75 (the LB policy is the leaf's own;
// idle_timeout), A29 (TLS), A32 (circuit breaker), A50 (outlier detection), A55
// (override_host_status).

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "messages/cluster_settings.hpp"
#include "messages/connectivity.hpp"
#include "messages/ids.hpp"
#include "messages/lb_config.hpp"

namespace signalbox {

/// Endpoints come from EDS, under this name (the cluster's own where CDS names none).
struct EdsDiscovery {
  std::string service_name;

  friend bool operator==(const EdsDiscovery&, const EdsDiscovery&) = default;
};

/// Endpoints come from resolving a name (A37-2).
struct DnsDiscovery {
  DnsName name;

  friend bool operator==(const DnsDiscovery&, const DnsDiscovery&) = default;
};

/// Stands for other clusters, in order of preference (A37-3). Never empty.
struct AggregateDiscovery {
  std::vector<ClusterName> clusters;

  friend bool operator==(const AggregateDiscovery&, const AggregateDiscovery&) = default;
};

/// How an aggregate spreads its calls (D1): over the first priority that can take them (A75), or
/// over all by their health (Envoy's aggregate cluster).
enum class AggregateMode : std::uint8_t { kPriority, kTiered };

struct Cluster {
  ClusterName name;
  std::variant<EdsDiscovery, DnsDiscovery, AggregateDiscovery> discovery;
  /// The policy under each EDS priority: wrr_locality{round_robin} and the like. Null in an
  /// aggregate, whose own lb_policy is ignored (A75-6, A75-7) unless the parser was told to keep
  /// it for the leaves (A75-8).
  LbConfigPtr lb_policy;
  /// How long one attempt to connect may take. Where CDS does not say: gRPC's 20 s, which are more
  /// than A56's failover window, so that the window decides when the next priority is tried.
  Duration connect_timeout = std::chrono::seconds(20);
  /// A leaf's host keeps a session's connection this long after its last call (A75-14 to A75-22).
  Duration idle_timeout = std::chrono::hours(1);
  /// Healths in which a session stays on its host (A55-3 to A55-5); empty: none does.
  HealthStatusSet override_host_status{HealthStatus::kUnknown, HealthStatus::kHealthy};
  /// circuit_breakers.thresholds: max_requests of the first one of priority DEFAULT (A32).
  std::uint32_t max_concurrent_requests = 1024;
  /// nullopt: no endpoint is ever set aside (A50).
  std::optional<OutlierDetection> outlier_detection = {};
  /// nullopt: the control plane says nothing of security, and the channel's credentials hold (A29).
  std::optional<UpstreamTls> tls = {};
  /// Each endpoint is to pass all of them; empty: none is probed. Shared with the subchannels.
  HealthChecksPtr health_checks = nullptr;
  /// Of an aggregate, metadata "signalbox": {"aggregate_mode": "priority" | "tiered"}; nullopt: as
  /// the runtime has it.
  std::optional<AggregateMode> aggregate_mode = {};
  /// common_lb_config.healthy_panic_threshold, in whole percent: read of an aggregate in tiered
  /// mode alone (ENV-31); nullopt: as the runtime has it.
  std::optional<std::uint32_t> panic_threshold = {};
};

}  // namespace signalbox
