// SPDX-License-Identifier: Apache-2.0
//
// host_count — how many endpoints are fit for calls, as the policy tiered counts them.
//
//   leaf policies ─▶ HostReport ─▶ weighted_target: the sum ─▶ leaf_tiers: by priority ─▶ tiered
//   Endpoints ─────▶ [tally] ──────────────────────────────────┘ for a tier without a child
//
// This file defines "healthy". Envoy judges a host by health checks and outlier detection; a client
// also knows whether it can connect (ENV-24). An endpoint is healthy when
//   - EDS says HEALTHY or UNKNOWN, and
//   - the judges (outlier detection, health checks) do not find it unfit; they find an endpoint
//     unfit only if they find each address unfit to which the policy holds a subchannel, and
//   - it is reachable. It is unreachable from the moment when all of its addresses have failed
//     until it is READY. This condition applies only with PolicyOptions::unreachable_is_unhealthy.
// DEGRADED endpoints are counted apart. UNHEALTHY and TIMEOUT endpoints count only in the total. An
// endpoint without any attempt to connect is healthy (ENV-25). Only DRAINING endpoints are excluded
// from the total (ENV-9, ENV-28): a drain that goes from host to host is no failure, and must not
// lead calls to the next priority.

#pragma once

#include <vector>

#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// Whether the reports have equal content; two nulls are equal.
bool same_hosts(const HostReportPtr& left, const HostReportPtr& right);

void add(HostTally& sum, const HostTally& more);
void take(HostTally& sum, const HostTally& less);

/// Whether EDS says DRAINING: the endpoint then gets at most calls of sessions.
inline bool is_draining(const Endpoint& endpoint) {
  return endpoint.health == HealthStatus::kDraining;
}

/// Counts all endpoints of these localities, except DRAINING endpoints (ENV-28).
HostTally tally(const std::vector<LocalityPtr>& localities);

/// Counts the endpoints in Priority::localities of all priorities, except DRAINING endpoints. Null:
/// no endpoints.
HostTally tally(const EndpointsPtr& endpoints);

/// The report of a leaf policy: `fit` of `total` endpoints are fit.
HostReportPtr fit_of(const HostTally& fit, const HostTally& total);

}  // namespace signalbox::lb
