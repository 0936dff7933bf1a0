// SPDX-License-Identifier: Apache-2.0
//
// Cluster — a validated CDS resource.
//
//   xds/parse/cluster ─▶ [Cluster] ─▶ cluster graph ─▶ XdsConfig ─▶ lb/cluster_tree
//
// Source: gRFC A27, A37 (LOGICAL_DNS, aggregate), A75 (the LB policy is the leaf's own).

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

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

struct Cluster {
  ClusterName name;
  std::variant<EdsDiscovery, DnsDiscovery, AggregateDiscovery> discovery;
  /// The policy under each EDS priority: wrr_locality{round_robin} and the like. Null in an
  /// aggregate, whose own lb_policy is ignored (A75-6, A75-7) unless the parser was told to keep
  /// it for the leaves (A75-8).
  LbConfigPtr lb_policy;
  Duration connect_timeout = std::chrono::seconds(5);
};

}  // namespace signalbox
