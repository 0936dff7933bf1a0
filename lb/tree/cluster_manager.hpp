// SPDX-License-Identifier: Apache-2.0
//
// cluster_manager — the top of the tree: one child for each cluster that routes or running calls
// refer to (gRFC A31).
//
//   channel ─▶ [cluster_manager] ─▶ cds, one for each cluster
//           ◀─ one picker for all, which asks the picker of the call's cluster
//
// Invariants
//   M1  The step that takes a configuration publishes a picker that knows all its clusters. A new
//       cluster has a picker that queues, so no child need have answered (A31-18).
//   M2  A retiring cluster (only earlier calls refer to it) drops each call that it would fail. A
//       failed wait_for_ready call would wait, and keep the cluster for ever (A31-17).
//   M3  A configuration, or a change of the aggregated state, is published at once. Other reports
//       of children wait for the end of a burst of events (RebuildSoon), or for an earlier
//       publication.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_cluster_manager();

}  // namespace signalbox::lb
