// SPDX-License-Identifier: Apache-2.0
//
// override_host — keeps a session on its backend (gRFC A55), across priorities (gRFC A75).
//
//   cluster_impl ─▶ [override_host] ─▶ priority ─▶ …
//
// Stands above the cluster's priorities, so that it will see the endpoints of all of them (A75-2).
// Today every call passes through to the child, which decides.
//
// Invariants
//   I1  The child never sees a DRAINING endpoint (A55-29).
//   I2  A locality that did not change keeps its pointer on the way down.

#pragma once

#include <memory>

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_override_host();

}  // namespace signalbox::lb
