// SPDX-License-Identifier: Apache-2.0
//
// host_count — how many endpoints are fit for calls, as tiered counts them.
//
//   leaf policies ─▶ HostReport ─▶ weighted_target: the sum ─▶ leaf_tiers: by priority ─▶ tiered
//   Endpoints ─────▶ [tally] ──────────────────────────────────┘ where nobody connects yet
//
// What healthy means is defined here, since a client knows more than Envoy, which goes by health
// checks and outlier detection alone (ENV-24). An endpoint is healthy when
//   - EDS says HEALTHY or UNKNOWN (DEGRADED ones are counted apart; UNHEALTHY and TIMEOUT ones in
//     the total alone), and
//   - no judge finds it unfit: outlier detection, health checks; of one with several addresses, all
//     that are held, and
//   - it can be connected to (PolicyOptions::unreachable_is_unhealthy, else it does not matter):
//     from the attempt in which all of its addresses failed until it is READY it is not.
// One that nobody has tried to connect to is healthy (ENV-25). Excluded from the total are those
// that EDS calls DRAINING, and no others (ENV-9, ENV-28): a drain that goes from host to host is no
// failure, and must not lead calls to the next priority.

#pragma once

#include <vector>

#include "lb/child_set.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// Equal in content; two nulls are.
bool same_hosts(const HostReportPtr& left, const HostReportPtr& right);

void add(HostTally& sum, const HostTally& more);
void take(HostTally& sum, const HostTally& less);

/// EDS has said so: it has no calls but of sessions.
inline bool is_draining(const Endpoint& endpoint) {
  return endpoint.health == HealthStatus::kDraining;
}

/// All endpoints of these localities but DRAINING ones (ENV-28).
HostTally tally(const std::vector<LocalityPtr>& localities);

/// Those of a slice that get calls; null: none.
HostTally tally(const EndpointsPtr& endpoints);

/// What a leaf policy says: so many of its endpoints are fit.
HostReportPtr fit_of(const HostTally& fit, const HostTally& total);

/// What the child says of its endpoints, all priorities together. One that says nothing has them
/// all fit, unless it is in TRANSIENT_FAILURE: then none.
PriorityHosts hosts_of(const Child& child);

}  // namespace signalbox::lb
