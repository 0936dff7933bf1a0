// SPDX-License-Identifier: Apache-2.0
//
// Observations — facts of a core that operators want to see. A core returns an Observation as an
// effect. The core's actor gives it to metrics/instruments, which maps it to a metric. The actor of
// a policy also gives it to the log and to the status board. PrioritiesSeen and PriorityMoved have
// no metric: they are for the status board alone.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "messages/connectivity.hpp"
#include "messages/counting/call_tracker.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// The priority that carries the cluster's calls now; -1: none. A cluster may be in the policy
/// trees of several targets, and several times in one tree (on its own and below aggregates). Each
/// time it has a policy of its own that chooses the priority. `before` is the priority that the
/// policy reported last. The policy's actor sets it, and the core leaves it empty.
struct PriorityActive {
  ClusterName cluster;
  int priority = -1;
  std::optional<int> before = std::nullopt;

  friend bool operator==(const PriorityActive&, const PriorityActive&) = default;
};

/// kDown: to a priority with a greater number, which is tried later. kUp: to a better priority.
enum class FailoverDirection : std::uint8_t { kDown, kUp };
/// Why the calls moved to another priority. The reasons mean the same as in PriorityChangeReason,
/// which has two more.
enum class FailoverReason : std::uint8_t { kFailed, kTimedOut, kRecovered, kReconfigured };

/// The calls of a cluster moved from one priority to another.
struct FailedOver {
  ClusterName cluster;
  FailoverDirection direction = FailoverDirection::kDown;
  FailoverReason reason = FailoverReason::kFailed;

  friend bool operator==(const FailedOver&, const FailedOver&) = default;
};

/// How long the cluster had no usable priority. Reported when a priority is usable again.
struct FailoverEnded {
  ClusterName cluster;
  Duration duration{};

  friend bool operator==(const FailoverEnded&, const FailoverEnded&) = default;
};

/// One priority of a cluster, as the policy `priority` sees it.
struct PrioritySeen {
  ChildName name;
  bool started = false;  ///< False: the fields below have no meaning.
  ConnectivityState state = ConnectivityState::kIdle;
  Instant since{};      ///< Since when `state` holds.
  absl::Status status;  ///< The reason of TRANSIENT_FAILURE; else OK.
  /// The end of its time to connect (RuntimeOptions::failover_timeout); nullopt: that time does not
  /// run.
  std::optional<Instant> window_ends;

  friend bool operator==(const PrioritySeen&, const PrioritySeen&) = default;
};

/// All priorities of a cluster, reported whenever one of them changed. For the status, not for a
/// metric.
struct PrioritiesSeen {
  ClusterName cluster;
  ClusterName aggregate;  ///< The aggregate above the cluster; empty: there is none.
  std::vector<PrioritySeen> priorities;
  std::optional<std::size_t> active;  ///< The priority that carries the calls.

  friend bool operator==(const PrioritiesSeen&, const PrioritiesSeen&) = default;
};

enum class PriorityChangeReason : std::uint8_t {
  kFirst,  ///< A priority carries calls for the first time since the policy began.
  /// The priority that carried calls before is in TRANSIENT_FAILURE, or has lost its connections
  /// while a standby was READY.
  kFailed,
  /// The priority that carried calls before did not connect again within
  /// RuntimeOptions::failover_timeout.
  kTimedOut,
  /// A better priority carries calls, or, after a time when none did, the same priority does again.
  kRecovered,
  kReconfigured,  ///< The list of priorities changed.
  kLost,          ///< No priority carries calls any more.
};

/// The active priority of a cluster changed. For the status, not for a metric.
struct PriorityMoved {
  ClusterName cluster;
  ClusterName aggregate;  ///< See PrioritiesSeen.
  Instant at{};
  std::optional<std::size_t> from;  ///< nullopt: no priority carried calls before.
  std::optional<std::size_t> to;    ///< nullopt: no priority carries calls now.
  ChildName from_name;              ///< Empty without `from`.
  ChildName to_name;                ///< Empty without `to`.
  PriorityChangeReason reason = PriorityChangeReason::kFirst;
  std::string details;  ///< The failure of the priority that calls left; may be empty.
  Duration without{};   ///< How long no priority carried calls before this change.
  /// How much of its time to connect (RuntimeOptions::failover_timeout) the priority that calls
  /// left still had; nullopt: that time was over, or did not run.
  std::optional<Duration> window_left;

  friend bool operator==(const PriorityMoved&, const PriorityMoved&) = default;
};

enum class EndpointState : std::uint8_t {
  kReady,
  kConnecting,
  kIdle,
  kTransientFailure,
  /// DRAINING in EDS, so only calls of sessions go to the endpoint; neither ejected nor unhealthy.
  kDraining,
  kEjected,   ///< By outlier detection.
  kUnhealthy  ///< Found unhealthy by health checks, and not ejected.
};
inline constexpr std::size_t kEndpointStates = 7;

using EndpointCounts = std::array<std::int64_t, kEndpointStates>;

/// The number of subchannels of one subchannel map in each state, in one priority. A cluster may
/// have several maps (see PriorityActive). The metric is the sum over the maps, so each map reports
/// its counts and its previous counts.
struct EndpointsCounted {
  ClusterName cluster;
  EndpointCounts by_state{};
  EndpointCounts before{};  ///< The counts that the map reported last.
  /// nullopt: the addresses that no priority of the configuration has.
  std::optional<std::uint32_t> priority = std::nullopt;

  friend bool operator==(const EndpointsCounted&, const EndpointsCounted&) = default;
};

/// A subchannel map has got new addresses, or has given up others, or both.
struct EndpointsChanged {
  ClusterName cluster;
  std::uint64_t added = 0;
  std::uint64_t removed = 0;

  friend bool operator==(const EndpointsChanged&, const EndpointsChanged&) = default;
};

/// A connection attempt has succeeded or failed. An abandoned attempt is not reported.
struct ConnectionAttempted {
  ClusterName cluster;
  bool connected = false;

  friend bool operator==(const ConnectionAttempted&, const ConnectionAttempted&) = default;
};

/// An established connection has ended.
struct ConnectionLost {
  ClusterName cluster;
  std::string reason = "unknown";  ///< From lb/subchannel/disconnect_reason.

  friend bool operator==(const ConnectionLost&, const ConnectionLost&) = default;
};

enum class DetectionMethod : std::uint8_t { kSuccessRate, kFailurePercentage };
inline constexpr std::size_t kDetectionMethods = 2;

/// The result for an endpoint that was found to be an outlier: it was ejected, or the reason why it
/// was not (A91).
enum class DetectionOutcome : std::uint8_t {
  kEjected,
  kEnforcementPercentage,
  kMaxEjectionOverflow
};
inline constexpr std::size_t kDetectionOutcomes = 3;

/// The number of a cluster's endpoints that were found to be outliers and had the same outcome
/// (A91).
struct OutliersDetected {
  ClusterName cluster;
  DetectionMethod method = DetectionMethod::kSuccessRate;
  DetectionOutcome outcome = DetectionOutcome::kEjected;
  std::uint64_t endpoints = 0;

  friend bool operator==(const OutliersDetected&, const OutliersDetected&) = default;
};

/// From now on `gate` limits the number of the cluster's calls in flight (A32).
struct CircuitBreakerSet {
  ClusterName cluster;
  CallGatePtr gate;

  friend bool operator==(const CircuitBreakerSet&, const CircuitBreakerSet&) = default;
};

/// The number of a cluster's subchannels that one subchannel map holds only for sessions.
/// Each map reports its number and its previous number, as in EndpointsCounted.
struct SessionsHeld {
  ClusterName cluster;
  std::int64_t held = 0;
  std::int64_t before = 0;  ///< The number that the map reported last.

  friend bool operator==(const SessionsHeld&, const SessionsHeld&) = default;
};

/// The map looked through the subchannels that it holds only for sessions, and released those that
/// no session had used for idle_timeout.
struct SessionsSwept {
  ClusterName cluster;
  std::uint64_t released = 0;  ///< May be 0.

  friend bool operator==(const SessionsSwept&, const SessionsSwept&) = default;
};

/// The share of an aggregate's calls that a leaf's priority gets in tiered mode, in percent.
/// nullopt: the priority is gone.
struct TierLoad {
  ClusterName cluster;
  ClusterName leaf;
  std::size_t priority = 0;
  std::optional<std::uint32_t> percent = std::nullopt;

  friend bool operator==(const TierLoad&, const TierLoad&) = default;
};

/// A probe of an endpoint has passed or failed. A probe with ProbeOutcome::kUndone is not reported.
struct HealthProbed {
  ClusterName cluster;
  bool passed = false;
  bool delayed = false;  ///< The probe waited for its turn, because too many probes were running.

  friend bool operator==(const HealthProbed&, const HealthProbed&) = default;
};

/// The policy weighted_round_robin has taken the weights of its READY endpoints anew (A78, A100).
struct WeightsTaken {
  ClusterName cluster;
  /// Fewer than two weights can be used, so calls go to all endpoints in turn.
  bool falls_back = false;
  /// Endpoints that have reported no load yet, or are in their blackout_period.
  std::uint64_t not_yet_usable = 0;
  std::uint64_t stale = 0;  ///< Endpoints with a last report that is too old.
  std::uint64_t in_slow_start = 0;
  std::vector<double> weights;  ///< One for each READY endpoint; 0: its weight cannot be used.
  std::string target = {};      ///< The target that the policy is in the tree of.
  /// The locality of the endpoints, as text. Empty: they are of several localities or of none, or
  /// localities are not asked for (PolicyOptions::metrics_by_locality).
  std::string locality = {};

  friend bool operator==(const WeightsTaken&, const WeightsTaken&) = default;
};

using Observation = std::variant<PriorityActive,
                                 FailedOver,
                                 FailoverEnded,
                                 EndpointsCounted,
                                 EndpointsChanged,
                                 ConnectionAttempted,
                                 ConnectionLost,
                                 OutliersDetected,
                                 CircuitBreakerSet,
                                 SessionsHeld,
                                 SessionsSwept,
                                 TierLoad,
                                 HealthProbed,
                                 WeightsTaken,
                                 PrioritiesSeen,
                                 PriorityMoved>;

}  // namespace signalbox
