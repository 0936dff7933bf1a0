// SPDX-License-Identifier: Apache-2.0
#include "messages/connectivity.hpp"

namespace signalbox {

absl::string_view to_string(ConnectivityState state) {
  switch (state) {
    case ConnectivityState::kIdle:
      return "IDLE";
    case ConnectivityState::kConnecting:
      return "CONNECTING";
    case ConnectivityState::kReady:
      return "READY";
    case ConnectivityState::kTransientFailure:
      return "TRANSIENT_FAILURE";
  }
  return "?";
}

absl::string_view to_string(HealthStatus status) {
  switch (status) {
    case HealthStatus::kUnknown:
      return "UNKNOWN";
    case HealthStatus::kHealthy:
      return "HEALTHY";
    case HealthStatus::kUnhealthy:
      return "UNHEALTHY";
    case HealthStatus::kDraining:
      return "DRAINING";
    case HealthStatus::kTimeout:
      return "TIMEOUT";
    case HealthStatus::kDegraded:
      return "DEGRADED";
  }
  return "?";
}

}  // namespace signalbox
