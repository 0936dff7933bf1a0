// SPDX-License-Identifier: Apache-2.0
//
// cluster_impl — drops and limits the calls of one cluster (gRFC A37, A32).
//
//   outlier_detection ─▶ [cluster_impl] ─▶ override_host ─▶ …
//
//   drops (EDS drop_overloads) ── before the child is asked: in each of its states
//   limit of calls in flight ──── after the child has chosen: no waiting or failed call counts
//
// Calls are dropped even when the cluster has no endpoint.
//
// Stands above the cluster's priorities, so that it acts once per cluster (A75-5). Calls that it
// refuses are dropped with UNAVAILABLE, even those that are wait_for_ready.
//
// Invariants
//   I1  All policies and channels count the calls in flight to one {cluster, EDS service name}
//       together (PolicyOptions::request_limits).
//   I2  A new limit and a new share of drops hold from the moment they are published.
//   I3  A child's picker that never completes is published unchanged if no calls are dropped.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_cluster_impl(PolicyContext context);

}  // namespace signalbox::lb
