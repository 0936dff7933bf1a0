// SPDX-License-Identifier: Apache-2.0
//
// Observations — what a core saw that an operator wants counted. Cores return them as an effect;
// shells hand them to metrics/instruments, whose names operations know.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>

#include "messages/counting/call_tracker.hpp"
#include "messages/ids.hpp"

namespace signalbox {

/// The priority that now carries the cluster's calls; -1: none. In each tree that leads to the
/// cluster a policy of its own decides that, and its shell says what it told last.
struct PriorityActive {
  ClusterName cluster;
  int priority = -1;
  std::optional<int> before = std::nullopt;

  friend bool operator==(const PriorityActive&, const PriorityActive&) = default;
};

enum class FailoverDirection : std::uint8_t { kDown, kUp };
enum class FailoverReason : std::uint8_t { kFailed, kTimedOut, kRecovered, kReconfigured };

/// The calls of a cluster moved from one priority to another.
struct FailedOver {
  ClusterName cluster;
  FailoverDirection direction = FailoverDirection::kDown;
  FailoverReason reason = FailoverReason::kFailed;

  friend bool operator==(const FailedOver&, const FailedOver&) = default;
};

/// How long the cluster was without a usable priority, told when one is usable again.
struct FailoverEnded {
  ClusterName cluster;
  Duration duration{};

  friend bool operator==(const FailoverEnded&, const FailoverEnded&) = default;
};

enum class EndpointState : std::uint8_t {
  kReady,
  kConnecting,
  kIdle,
  kTransientFailure,
  kDraining,
  kEjected,   ///< By outlier detection.
  kUnhealthy  ///< By health checks alone.
};
inline constexpr std::size_t kEndpointStates = 7;

using EndpointCounts = std::array<std::int64_t, kEndpointStates>;

/// How many subchannels one subchannel map has in which state. Several maps may serve a cluster
/// (one in each tree that leads there): what is counted adds up, so each says what has changed.
struct EndpointsCounted {
  ClusterName cluster;
  EndpointCounts by_state{};
  EndpointCounts before{};  ///< As it told last.

  friend bool operator==(const EndpointsCounted&, const EndpointsCounted&) = default;
};

/// A connection attempt ended.
struct ConnectionAttempted {
  ClusterName cluster;
  bool connected = false;

  friend bool operator==(const ConnectionAttempted&, const ConnectionAttempted&) = default;
};

/// An established connection was lost.
struct ConnectionLost {
  ClusterName cluster;

  friend bool operator==(const ConnectionLost&, const ConnectionLost&) = default;
};

enum class DetectionMethod : std::uint8_t { kSuccessRate, kFailurePercentage };
inline constexpr std::size_t kDetectionMethods = 2;

/// What became of an endpoint that was found to be an outlier: it was ejected, or the reason why
/// not, which are A91's.
enum class DetectionOutcome : std::uint8_t {
  kEjected,
  kEnforcementPercentage,
  kMaxEjectionOverflow
};
inline constexpr std::size_t kDetectionOutcomes = 3;

/// So many endpoints of a cluster were found to be outliers, and this became of them (A91).
struct OutliersDetected {
  ClusterName cluster;
  DetectionMethod method = DetectionMethod::kSuccessRate;
  DetectionOutcome outcome = DetectionOutcome::kEjected;
  std::uint64_t endpoints = 0;

  friend bool operator==(const OutliersDetected&, const OutliersDetected&) = default;
};

/// From now on calls of the cluster pass this gate (A32).
struct CircuitBreakerSet {
  ClusterName cluster;
  CallGatePtr gate;

  friend bool operator==(const CircuitBreakerSet&, const CircuitBreakerSet&) = default;
};

/// How many subchannels of a cluster one subchannel map holds for sessions alone (A75-24). Told as
/// EndpointsCounted is.
struct SessionsHeld {
  ClusterName cluster;
  std::int64_t held = 0;
  std::int64_t before = 0;  ///< As it told last.

  friend bool operator==(const SessionsHeld&, const SessionsHeld&) = default;
};

/// A sweep released so many of them.
struct SessionsSwept {
  ClusterName cluster;
  std::uint64_t released = 0;

  friend bool operator==(const SessionsSwept&, const SessionsSwept&) = default;
};

/// The share of an aggregate's calls that goes to a leaf's priority, in percent, in tiered mode;
/// nullopt: it is not there (any more).
struct TierLoad {
  ClusterName cluster;
  ClusterName leaf;
  std::size_t priority = 0;
  std::optional<std::uint32_t> percent = std::nullopt;

  friend bool operator==(const TierLoad&, const TierLoad&) = default;
};

/// A probe of an endpoint has ended.
struct HealthProbed {
  ClusterName cluster;
  bool passed = false;
  bool delayed = false;  ///< It waited for its turn: too many were under way.

  friend bool operator==(const HealthProbed&, const HealthProbed&) = default;
};

using Observation = std::variant<PriorityActive,
                                 FailedOver,
                                 FailoverEnded,
                                 EndpointsCounted,
                                 ConnectionAttempted,
                                 ConnectionLost,
                                 OutliersDetected,
                                 CircuitBreakerSet,
                                 SessionsHeld,
                                 SessionsSwept,
                                 TierLoad,
                                 HealthProbed>;

}  // namespace signalbox
