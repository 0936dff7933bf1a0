// SPDX-License-Identifier: Apache-2.0
//
// Endpoints — the addresses of one cluster: priorities ▷ localities ▷ endpoints.
//
//   xds/parse/endpoints ─┐
//   dns answer ──────────┴▶ [Endpoints] ─▶ XdsConfig ─▶ policies, each given its slice (Endpoints)
//
// Generations share localities by pointer. An unchanged locality keeps its pointer, so a receiver
// finds changes by comparing pointers.
//
// Source: gRFC A27 (EDS), A37-20 (DNS: one priority, one locality), A61 (several addresses), A76
// (hash key), A81 (hostname); Envoy's aggregate cluster (overprovisioning).

#pragma once

#include <array>
#include <cstddef>
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

  template <typename H>
  friend H AbslHashValue(H state, const LocalityName& name) {
    return H::combine(std::move(state), name.region, name.zone, name.sub_zone);
  }
};

/// `{region="r", zone="z", sub_zone="s"}`, gRPC's own form of a locality (A78).
std::string to_string(const LocalityName& name);

/// The zone of an endpoint, as the caller sees it.
enum class CallZone : std::uint8_t {
  kUnknown,  ///< The zone of the caller or of the endpoint is not known.
  kOwn,
  kOther
};
inline constexpr std::size_t kCallZones = 3;

/// Compares regions and zones; sub-zones of one zone are the same zone. A locality without a zone
/// is in an unknown zone.
CallZone zone_of(const LocalityName& endpoint, const LocalityName& caller);

/// One backend. All its addresses lead to this backend; the preferred address is first. There is at
/// least one address.
struct Endpoint {
  std::vector<Address> addresses;
  HealthStatus health = HealthStatus::kUnknown;
  std::uint32_t weight = 1;
  std::string hostname = {};  ///< For :authority (A81); empty: unknown.
  std::string hash_key = {};  ///< Decides the place on the ring (A76); empty: the address decides.

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

struct Locality {
  LocalityName name;
  std::uint32_t weight = 1;
  std::vector<Endpoint> endpoints;

  friend bool operator==(const Locality&, const Locality&) = default;
};

using LocalityPtr = std::shared_ptr<const Locality>;

/// In priority mode only `localities` get calls. In tiered mode `degraded` endpoints get the calls
/// that the healthy endpoints cannot take. In panic, a state of tiered mode, all endpoints get
/// calls alike, except DRAINING ones.
struct Priority {
  /// Endpoints that are HEALTHY, UNKNOWN or DRAINING. Below leaf_tiers: the endpoints of one tier.
  std::vector<LocalityPtr> localities;
  /// `degraded` has the same localities with only their DEGRADED endpoints. `unhealthy` has them
  /// with only their UNHEALTHY and TIMEOUT endpoints. A locality without such endpoints is left
  /// out. All these endpoints count in the health of the priority. Below override_host `unhealthy`
  /// also has the DRAINING endpoints, which do not count, and `localities` has them no more.
  std::vector<LocalityPtr> degraded = {};
  std::vector<LocalityPtr> unhealthy = {};

  /// All three lists, in the order of their declaration.
  auto lists() const { return std::array{&localities, &degraded, &unhealthy}; }

  auto lists() { return std::array{&localities, &degraded, &unhealthy}; }
};

/// EDS drop_overloads, in parts of a million. Read by cluster_impl.
struct DropCategory {
  std::string category;
  std::uint32_t drop_per_million = 0;

  friend bool operator==(const DropCategory&, const DropCategory&) = default;
};

/// An exception from the cluster's health_checks for one endpoint (EDS health_check_config).
struct ProbeException {
  bool is_exempt = false;  ///< The endpoint is not probed.
  std::uint32_t port = 0;  ///< The port that is probed; 0: the port of its calls.

  friend bool operator==(const ProbeException&, const ProbeException&) = default;
};

/// The key is an address. An endpoint with several addresses has one entry for each address.
using ProbeExceptions = std::map<Address, ProbeException>;
using ProbeExceptionsPtr = std::shared_ptr<const ProbeExceptions>;

/// Whether the exceptions are equal in content.
inline bool same_exceptions(const ProbeExceptionsPtr& left, const ProbeExceptionsPtr& right) {
  return left == right || (left != nullptr && right != nullptr && *left == *right);
}

/// The endpoints of a whole cluster, or the part of them that one policy may use (its slice).
struct Endpoints {
  std::vector<Priority> priorities;
  std::vector<DropCategory> drops;
  /// EDS policy.overprovisioning_factor, in percent: how far a priority may shrink before the next
  /// priority takes calls. It has an effect only in tiered mode, and in plans of that mode.
  std::uint32_t overprovisioning_percent = 140;
  /// EDS policy.weighted_priority_health. True: the health of a priority is the share of healthy
  /// endpoints by weight, not by number.
  bool weighted_priority_health = false;
  /// The exceptions of the whole cluster; null: there are none. They may be missing in a slice.
  ProbeExceptionsPtr probe_exceptions = nullptr;
  /// The number of localities of an assignment in which no locality has a weight, so no locality is
  /// used (A27). Otherwise 0. Only error texts show this number.
  std::size_t unweighted_localities = 0;
};

using EndpointsPtr = std::shared_ptr<const Endpoints>;

/// Whether the contents are equal; the localities need not be shared by pointer.
bool operator==(const Endpoints& left, const Endpoints& right);

/// The number of endpoints in `localities` of all priorities; degraded and unhealthy endpoints are
/// not counted.
std::size_t count_endpoints(const Endpoints& endpoints);

}  // namespace signalbox
