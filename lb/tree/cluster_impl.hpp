// SPDX-License-Identifier: Apache-2.0
//
// cluster_impl — drops and limits the calls of one cluster (gRFC A37, A32).
//
//   outlier_detection ─▶ [cluster_impl] ─▶ override_host ─▶ …
//
//   drops (EDS drop_overloads) ── before the child is asked, whatever the child's state
//   limit of calls in flight ──── after the child has chosen; calls that wait or fail do not count
//
// Both rules end a call with UNAVAILABLE, even a wait_for_ready call. Drops apply even when the
// cluster has no endpoint.
//
// cluster_impl is above the cluster's priorities in the policy tree. So the rules apply once to
// each pick, not once per priority (A75-5).
//
// Invariants
//   I1  One counter for each {cluster, EDS service name} counts the calls in flight of all policies
//       and channels that share PolicyOptions::request_limits.
//   I2  A new limit, or a new share of dropped calls, applies from the publication of its picker.
//   I3  When no calls are dropped, a child's picker that is known to complete no pick
//       (never_completes() in pick/pickers.hpp) is published unchanged, because there is no call to
//       limit.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_cluster_impl(PolicyContext context);

}  // namespace signalbox::lb
