// SPDX-License-Identifier: Apache-2.0
//
// Endpoints — the addresses of one cluster: priorities ▷ localities ▷ endpoints.
//
//   xds/parse/endpoints ─┐
//   dns answer ──────────┴▶ [Endpoints] ─▶ XdsConfig ─▶ policies, each given its slice
//
// Localities are shared by pointer between generations: one that did not change keeps its
// pointer, so that a receiver can tell by comparing pointers.
//
// Source: gRFC A27 (EDS), A37-20 (DNS: one priority, one locality), A61 (several addresses), A76
// (hash key), A81 (hostname); Envoy's aggregate cluster (overprovisioning).

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "messages/connectivity.hpp"
#include "messages/ids.hpp"

namespace signalbox {

struct LocalityName {
  std::string region;
  std::string zone;
  std::string sub_zone;

  friend bool operator==(const LocalityName&, const LocalityName&) = default;
  friend auto operator<=>(const LocalityName&, const LocalityName&) = default;
};

/// `{region="r", zone="z", sub_zone="s"}`, gRPC's own form of a locality (A78).
std::string to_string(const LocalityName& name);

/// One backend: a set of addresses that all lead to it, the preferred one first. Never empty.
struct Endpoint {
  std::vector<Address> addresses;
  HealthStatus health = HealthStatus::kUnknown;
  std::uint32_t weight = 1;
  std::string hostname = {};  ///< For :authority (A81); empty: none is known.
  std::string hash_key = {};  ///< Its place on the ring (A76); empty: its address is.

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

struct Locality {
  LocalityName name;
  std::uint32_t weight = 1;
  std::vector<Endpoint> endpoints;

  friend bool operator==(const Locality&, const Locality&) = default;
};

using LocalityPtr = std::shared_ptr<const Locality>;

/// Only `localities` get calls, but for tiered mode: there `degraded` ones have what the others
/// cannot take, and in panic all have the same.
struct Priority {
  std::vector<LocalityPtr> localities;  ///< Who is HEALTHY, UNKNOWN or DRAINING.
  /// The same localities, and only those that have any: who is DEGRADED, and who is UNHEALTHY or
  /// TIMEOUT. They count in the health of the priority (ENV-9).
  std::vector<LocalityPtr> degraded = {};
  std::vector<LocalityPtr> unhealthy = {};
};

/// EDS drop_overloads, in parts of a million (A37-27). Read by cluster_impl.
struct DropCategory {
  std::string category;
  std::uint32_t drop_per_million = 0;

  friend bool operator==(const DropCategory&, const DropCategory&) = default;
};

/// How one endpoint is probed in another way than its cluster's health_checks have it (EDS
/// health_check_config).
struct ProbeException {
  bool is_exempt = false;  ///< It is not probed, and so is fit.
  std::uint32_t port = 0;  ///< Where it is probed; 0: where its calls go.

  friend bool operator==(const ProbeException&, const ProbeException&) = default;
};

/// By each of the endpoint's addresses.
using ProbeExceptions = std::map<Address, ProbeException>;
using ProbeExceptionsPtr = std::shared_ptr<const ProbeExceptions>;

/// Whether both say the same of everybody.
inline bool same_exceptions(const ProbeExceptionsPtr& left, const ProbeExceptionsPtr& right) {
  return left == right || (left != nullptr && right != nullptr && *left == *right);
}

/// A whole cluster, or the slice of it that a policy was given.
struct Endpoints {
  std::vector<Priority> priorities;
  std::vector<DropCategory> drops;
  /// EDS policy.overprovisioning_factor, in percent: how far a priority may shrink before the next
  /// one takes calls. Read in tiered mode alone (ENV-7).
  std::uint32_t overprovisioning_percent = 140;
  /// EDS policy.weighted_priority_health: health counts weights, not endpoints (ENV-9).
  bool weighted_priority_health = false;
  /// Of a whole cluster; null: there is none. A slice need not have it.
  ProbeExceptionsPtr probe_exceptions = nullptr;
};

using EndpointsPtr = std::shared_ptr<const Endpoints>;

/// Equal in content, whether or not localities are shared.
bool operator==(const Endpoints& left, const Endpoints& right);

/// How many endpoints there are in all priorities together.
std::size_t count_endpoints(const Endpoints& endpoints);

}  // namespace signalbox
