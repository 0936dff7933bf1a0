// SPDX-License-Identifier: Apache-2.0
//
// Plan — how the calls to a cluster spread over its endpoints, and how they would spread if some
// endpoints were unhealthy or unreachable (PlanAssumptions).
//
//   clusters, endpoints, assumptions ─▶ lb/health/plan ─▶ [Plan] ─▶ plan_file, Runtime::plan
//
//   Plan ▷ leaves ▷ priorities ▷ localities ▷ endpoints          each with its share of all calls
//
// A plan has four answers: for priority mode (A75) and for tiered mode (Envoy's aggregate cluster),
// each as it is now (with the healths from EDS) and as it would be under the PlanAssumptions.
//
// Invariants of each answer
//   P1  The shares of the leaves and the plan's `failing` sum to kAllCalls.
//   P2  A leaf's share is the sum of its priorities' shares, a priority's the sum of its
//       localities', a locality's the sum of its endpoints'. All sums are exact.
//
// Source: gRFC A56, A75 (priority mode); Envoy's aggregate cluster (tiered mode, ENV).

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "messages/cluster.hpp"
#include "messages/connectivity.hpp"
#include "messages/endpoints.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// Parts of a million of all calls to the cluster: 10,000 parts are one percent.
using CallShare = std::uint32_t;
inline constexpr CallShare kAllCalls = 1'000'000;

// --- what is assumed -------------------------------------------------------

/// The assumed health of one priority: which percentage of its endpoints is healthy, and which is
/// DEGRADED. It replaces the endpoints' healths from EDS.
struct AssumedHealth {
  ClusterName leaf;
  std::size_t priority = 0;
  std::uint32_t healthy_percent = 100;
  std::uint32_t degraded_percent = 0;  ///< Together with healthy_percent at most 100.
};

struct PlanAssumptions {
  std::vector<AssumedHealth> health;  ///< Each priority at most once.
  /// The endpoints that the plan takes as unreachable. An entry is an endpoint's address, or
  /// "zone", "region/zone" or "region/zone/sub_zone" for every locality of that name.
  std::vector<std::string> down;
  /// The panic threshold of tiered mode in percent, for both shares of PlannedShare; see
  /// RuntimeOptions::panic_threshold. An aggregate's own threshold takes precedence.
  std::uint32_t panic_threshold = 0;

  bool empty() const { return health.empty() && down.empty(); }
};

// --- the answer ------------------------------------------------------------

/// One part's share of all calls. `now`: with the healths from EDS. `then`: under the
/// PlanAssumptions of the request. They are equal when PlanAssumptions::empty().
struct PlannedShare {
  CallShare now = 0;
  CallShare then = 0;

  friend bool operator==(const PlannedShare&, const PlannedShare&) = default;
};

struct PlannedShares {
  PlannedShare priority;
  PlannedShare tiered;

  friend bool operator==(const PlannedShares&, const PlannedShares&) = default;
};

/// The health scores of a priority in tiered mode, and their inputs. `healthy` is the percentage of
/// healthy hosts times overprovisioning_factor / 100, at most 100; `degraded` is the same for
/// DEGRADED hosts.
struct PlannedHealth {
  std::uint32_t healthy = 0;
  std::uint32_t degraded = 0;
  /// The fraction of the priority's hosts that are healthy, in millionths. Hosts are counted by
  /// weight when EDS says so.
  std::uint32_t healthy_hosts = 0;
  std::uint32_t overprovisioning_factor = 140;  ///< In percent.
  bool panic = false;  ///< The priority's calls go to all of its endpoints but DRAINING ones.

  friend bool operator==(const PlannedHealth&, const PlannedHealth&) = default;
};

struct PlannedEndpoint {
  /// Never empty. The only entry for an unresolved LOGICAL_DNS cluster is its DNS name.
  std::vector<Address> addresses;
  HealthStatus health = HealthStatus::kUnknown;  ///< From EDS.
  std::uint32_t weight = 1;
  bool down = false;  ///< Assumed to be unreachable.
  PlannedShares shares;
};

struct PlannedLocality {
  LocalityName name;
  std::uint32_t weight = 1;
  std::vector<PlannedEndpoint> endpoints;
  PlannedShares shares;
};

struct PlannedPriority {
  std::vector<PlannedLocality> localities;
  bool assumed = false;  ///< An AssumedHealth names this priority.
  PlannedHealth now;
  PlannedHealth then;
  PlannedShares shares;
};

struct PlannedLeaf {
  ClusterName name;
  std::string lb_policy;  ///< The leaf's policies, outermost first: "wrr_locality, round_robin".
  std::string note;       ///< A remark on the leaf's shares; may be empty.
  std::vector<PlannedPriority> priorities;
  PlannedShares shares;
};

struct Plan {
  ClusterName cluster;
  bool is_aggregate = false;
  /// The mode that the cluster runs in: from its metadata, else from its runtime. A leaf is always
  /// in priority mode.
  AggregateMode mode = AggregateMode::kPriority;
  bool mode_is_own = false;  ///< The cluster's metadata set the mode.
  /// The panic threshold of tiered mode, in percent.
  std::uint32_t panic_threshold = 0;
  bool panic_threshold_is_own = false;  ///< The cluster's common_lb_config sets it.
  std::vector<PlannedLeaf> leaves;
  PlannedShares failing;           ///< Calls that find no endpoint.
  LocalityName caller;             ///< The client's locality; without a zone: not known.
  PlannedShares own_zone;          ///< Calls that stay in the caller's zone.
  std::vector<std::string> notes;  ///< Texts for people, about resources that are missing.
};

}  // namespace signalbox
