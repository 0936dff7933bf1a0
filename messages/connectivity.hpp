// SPDX-License-Identifier: Apache-2.0
//
// The states of a connection (gRPC connectivity semantics) and the healths of an endpoint (EDS).

#pragma once

#include <cstdint>
#include <initializer_list>

#include "absl/strings/string_view.h"

namespace signalbox {

enum class ConnectivityState : std::uint8_t { kIdle, kConnecting, kReady, kTransientFailure };

absl::string_view to_string(ConnectivityState state);

/// EDS health status; numbers as in envoy.config.core.v3.HealthStatus.
enum class HealthStatus : std::uint8_t {
  kUnknown = 0,
  kHealthy = 1,
  kUnhealthy = 2,
  kDraining = 3,
  kTimeout = 4,
  kDegraded = 5,
};

absl::string_view to_string(HealthStatus status);

/// A set of EDS health statuses, one bit each.
class HealthStatusSet {
 public:
  constexpr HealthStatusSet() = default;

  constexpr HealthStatusSet(std::initializer_list<HealthStatus> statuses) {
    for (const HealthStatus status : statuses)
      insert(status);
  }

  constexpr void insert(HealthStatus status) { bits_ |= bit(status); }

  constexpr bool contains(HealthStatus status) const { return (bits_ & bit(status)) != 0; }

  constexpr bool empty() const { return bits_ == 0; }

  friend constexpr bool operator==(HealthStatusSet, HealthStatusSet) = default;

 private:
  static constexpr std::uint8_t bit(HealthStatus status) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(status));
  }

  std::uint8_t bits_ = 0;
};

}  // namespace signalbox
