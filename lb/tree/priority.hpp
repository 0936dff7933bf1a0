// SPDX-License-Identifier: Apache-2.0
//
// priority — calls go to the first child that can take them (gRFC A56, A115).
//
//   override_host ─▶ [priority] ─▶ one child for each priority of a leaf cluster
//   cds(aggregate) ─▶ [priority] ─▶ cds, one for each leaf of the aggregate (A75-1)
//
//   not started ──needed──▶ trying ──READY, IDLE──▶ usable ──CONNECTING──▶ trying, a new window
//                             │                     │    ▲
//          window over, or TF ▼                  TF ▼    │ READY, IDLE
//                           failed ◀────────────────┘    │
//                             └──────────────────────────┘
//
// trying: CONNECTING, within its failover window. failed: in TRANSIENT_FAILURE (TF), or CONNECTING
// after its window; the next child is then tried too.
//
// Invariants
//   P1  A child is started only when the failover window of each child above it is over, or that
//       higher child has failed. Exception: standbys (P7).
//   P2  A child's failover window opens when the child is started, for
//       PolicyOptions::failover_timeout. It opens again when the child becomes CONNECTING, if the
//       child was READY or IDLE more recently than TRANSIENT_FAILURE. A child that reports
//       CONNECTING again does not restart its window. READY, IDLE and TRANSIENT_FAILURE close the
//       window; deactivation does not.
//   P3  While the chosen child is usable, the children below its standbys are deactivated. A
//       deactivated child is stopped after kPriorityRetention (15 minutes), unless it is needed
//       again before.
//   P4  A child that a configuration no longer names is stopped as soon as the policy has chosen
//       among the named children (A115). With PolicyOptions::keep_removed_priorities the child is
//       deactivated instead.
//   P5  A configuration is half applied until every living child that it names has answered it.
//       Meanwhile the policy chooses, starts and stops no child; it records states, and failover
//       windows run. It publishes only reports of the child in use, and only while that child is
//       READY or IDLE. If configurations arrive, the newest waits. If a child's retention ends, the
//       child is stopped after the next choice, unless that choice needs it.
//   P6  A configuration is half applied for at most one failover_timeout. Then the policy chooses
//       without the missing answers. It never waits for a dead child.
//   P7  While the chosen child is usable, the next PolicyOptions::standby_priorities children below
//       it are active; among the leaves of an aggregate at most one, the next. While a child that
//       lost its connections is within its failover window, the first READY one of its standbys
//       carries the calls (priority_rules.hpp).

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_priority(PolicyOptions options = {});

}  // namespace signalbox::lb
