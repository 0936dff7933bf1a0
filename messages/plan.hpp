// SPDX-License-Identifier: Apache-2.0
//
// Plan — how the calls to a cluster spread over its endpoints, and how they would spread if some of
// these were not well.
//
//   clusters, endpoints, assumptions ─▶ lb/health/plan ─▶ [Plan] ─▶ plan_file, Runtime::plan
//
//   Plan ▷ leaves ▷ priorities ▷ localities ▷ endpoints          each with its share of all calls
//
// There are four answers, side by side: in priority mode (A75) and in tiered mode (Envoy's
// aggregate cluster), as it is now and as it would be then.
//
// Invariants, of each answer
//   P1  The shares of the leaves and the plan's `failing` sum to kAllCalls.
//   P2  The share of a leaf is the sum of its priorities', that of a priority the sum of its
//       localities', that of a locality the sum of its endpoints': all of them exactly.
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

/// Parts of a million of all calls to the cluster: 10,000 of them are a percent.
using CallShare = std::uint32_t;
inline constexpr CallShare kAllCalls = 1'000'000;

// --- what is assumed -------------------------------------------------------

/// Of a priority's endpoints so many are fit, whoever they are; EDS does not count then.
struct AssumedHealth {
  ClusterName leaf;
  std::size_t priority = 0;
  std::uint32_t healthy_percent = 100;
  std::uint32_t degraded_percent = 0;  ///< Together at most 100.
};

struct PlanAssumptions {
  std::vector<AssumedHealth> health;  ///< Each priority at most once.
  /// Who cannot be reached: "zone", "region/zone" or "region/zone/sub_zone", which mean every
  /// locality of that name, or the address of one endpoint.
  std::vector<std::string> down;
  /// Of tiered mode, now and then; as RuntimeOptions::panic_threshold: an aggregate's own threshold
  /// comes first (ENV-31).
  std::uint32_t panic_threshold = 0;

  bool empty() const { return health.empty() && down.empty(); }
};

// --- the answer ------------------------------------------------------------

/// As it is, and as it would be. Without assumptions both are the same.
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

/// The health scores of a priority in tiered mode (ENV-7), in percent, and what they are made of.
struct PlannedHealth {
  std::uint32_t healthy = 0;
  std::uint32_t degraded = 0;
  /// In millionths: the healthy share of the priority's hosts (by weight, where EDS says so).
  std::uint32_t healthy_hosts = 0;
  std::uint32_t overprovisioning_factor = 140;  ///< In percent.
  bool panic = false;                           ///< Its calls go to all of its endpoints alike.

  friend bool operator==(const PlannedHealth&, const PlannedHealth&) = default;
};

struct PlannedEndpoint {
  std::vector<Address> addresses;  ///< Of LOGICAL_DNS that was not resolved, the name. Never empty.
  HealthStatus health = HealthStatus::kUnknown;  ///< As EDS has it.
  std::uint32_t weight = 1;
  bool down = false;  ///< Assumed.
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
  bool assumed = false;  ///< Its health is an AssumedHealth.
  PlannedHealth now;
  PlannedHealth then;
  PlannedShares shares;
};

struct PlannedLeaf {
  ClusterName name;
  std::string lb_policy;  ///< "wrr_locality, round_robin"
  std::string note;       ///< What is to be known of its shares; may be empty.
  std::vector<PlannedPriority> priorities;
  PlannedShares shares;
};

struct Plan {
  ClusterName cluster;
  bool is_aggregate = false;
  /// What it runs in: as its metadata say, else as its runtime has it; a leaf always in priority.
  AggregateMode mode = AggregateMode::kPriority;
  bool mode_is_own = false;  ///< Its metadata say so.
  /// The one that the answers in tiered mode go by, in percent.
  std::uint32_t panic_threshold = 0;
  bool panic_threshold_is_own = false;  ///< Its common_lb_config says so.
  std::vector<PlannedLeaf> leaves;
  PlannedShares failing;           ///< Calls that find nobody.
  std::vector<std::string> notes;  ///< What is missing.
};

}  // namespace signalbox
