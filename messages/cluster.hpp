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
#include "messages/load_reporting.hpp"

namespace signalbox {

/// Endpoints come from the EDS resource `service_name`. When CDS names none, `service_name` is the
/// cluster's own name.
struct EdsDiscovery {
  std::string service_name;

  friend bool operator==(const EdsDiscovery&, const EdsDiscovery&) = default;
};

/// Endpoints are the addresses that DNS returns for a name.
struct DnsDiscovery {
  DnsName name;

  friend bool operator==(const DnsDiscovery&, const DnsDiscovery&) = default;
};

/// An aggregate lists other clusters in order of preference. The list is never empty.
struct AggregateDiscovery {
  std::vector<ClusterName> clusters;

  friend bool operator==(const AggregateDiscovery&, const AggregateDiscovery&) = default;
};

/// How an aggregate spreads its calls. kPriority: the first priority that can take calls gets them
/// (A75). kTiered: all priorities share the calls by health (Envoy's aggregate cluster).
enum class AggregateMode : std::uint8_t { kPriority, kTiered };

struct Cluster {
  ClusterName name;
  std::variant<EdsDiscovery, DnsDiscovery, AggregateDiscovery> discovery;
  /// The policy under each EDS priority: wrr_locality{round_robin} and the like. It is null in an
  /// aggregate, because an aggregate's own lb_policy is ignored (A75-6). With the parser's option
  /// keep_aggregate_lb_policy an aggregate has a policy, which its leaves use (A75-8).
  LbConfigPtr lb_policy;
  /// How long one attempt to connect may take. The default is gRPC's 20 s. It is longer than A56's
  /// failover timer of 10 s, so that the timer decides when the next priority is tried.
  Duration connect_timeout = std::chrono::seconds(20);
  /// After the last call of a session to a host, the host's connection is kept for this time (A75).
  Duration idle_timeout = std::chrono::hours(1);
  /// A session may stay on its host while it has one of these healths (A55-3 to A55-5). Empty:
  /// no session stays.
  HealthStatusSet override_host_status{HealthStatus::kUnknown, HealthStatus::kHealthy};
  /// circuit_breakers.thresholds: max_requests of the first threshold of priority DEFAULT (A32).
  std::uint32_t max_concurrent_requests = kDefaultMaxRequests;
  /// circuit_breakers.per_host_thresholds: max_connections of the first threshold of priority
  /// DEFAULT (A105). The most connections to one endpoint; at least 1.
  std::uint32_t max_connections_per_endpoint = 1;
  /// nullopt: no endpoint is ever ejected (A50).
  std::optional<OutlierDetection> outlier_detection = {};
  /// nullopt: CDS has no security settings, so RuntimeOptions::channel_credentials are used (A29).
  std::optional<UpstreamTls> tls = {};
  /// An endpoint must pass all of these checks. Null: no endpoint is probed. The subchannels share
  /// this object.
  HealthChecksPtr health_checks = nullptr;
  /// An aggregate's metadata "signalbox": {"aggregate_mode": "priority" | "tiered"}. nullopt: the
  /// runtime's mode applies.
  std::optional<AggregateMode> aggregate_mode = {};
  /// common_lb_config.healthy_panic_threshold, in whole percent. It has an effect only in tiered
  /// mode of an aggregate, and in plans of that mode. nullopt: the runtime's threshold applies.
  std::optional<std::uint32_t> panic_threshold = {};
  /// nullopt: the cluster's load is reported to no server. An aggregate's own setting has no effect
  /// (A37).
  std::optional<LoadReporting> load_reporting = {};
};

}  // namespace signalbox
