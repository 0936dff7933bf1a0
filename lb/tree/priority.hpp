// SPDX-License-Identifier: Apache-2.0
//
// priority — calls go to the first child that can take them (gRFC A56, A115).
//
//   override_host ─▶ [priority] ─▶ one child for each priority of a leaf cluster
//   cds(aggregate) ─▶ [priority] ─▶ cds, one for each leaf of the aggregate (A75-1)
//
//   not started ──needed──▶ trying ──READY, IDLE──▶ usable
//                             │ ▲                     │ CONNECTING: a new failover window
//          window over, or TF ▼ │ (window)            ▼
//                            failed ◀─────TF──── (trying)      ⇒ the next one is tried as well
//
// Invariants
//   P1  A child is started only when every child above it has failed or outlived its window.
//   P2  The failover window begins at a child's start, and when it goes to CONNECTING having been
//       READY or IDLE more recently than TRANSIENT_FAILURE; CONNECTING again does not restart it.
//       READY, IDLE and TRANSIENT_FAILURE end it; deactivation does not.
//   P3  Children below a usable one are deactivated: stopped kPriorityRetention later, unless they
//       are needed again.
//   P4  A child that a configuration no longer names is stopped with the choice that does without
//       it (A115); with PolicyOptions::keep_removed_priorities it is deactivated instead.
//   P5  No choice is made while a configuration is half applied: not before every living child has
//       answered it. Until then states are recorded and windows run. No child is started or
//       stopped. What was published stays, but for news of the child in use while it can take
//       calls. The newest configuration that comes meanwhile waits. A child with a retention that
//       ends meanwhile is stopped with the choice, unless the choice needs it.
//   P6  A configuration is half applied for one failover window at most: then children that have
//       not answered are not waited for; dead ones never are.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_priority(PolicyOptions options = {});

}  // namespace signalbox::lb
