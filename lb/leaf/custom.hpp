// SPDX-License-Identifier: Apache-2.0
//
// custom — a policy that the user registered, and our side of the contract with it (gRFC A52).
//
//   Event ─▶ [custom] ─▶ the user's step ─▶ effects, all checked ─▶ shell
//                                        └▶ a broken promise: the actor dies, and its last picker
//                                           goes on serving
//   pick ─▶ custom_picker ─▶ the user's picker
//
// What the user's policy throws goes through: the shell ends the actor, counts, tells, and restarts
// it with back-off, never with what killed it. The effects of such a step are not run, not even
// those before the wrong one.
//
// Invariants: what the user's policy promises. lb/policy.hpp has P1 to P3.
//   I1  Once configured it has published, and it reports nothing applied before (P1).
//   I2  What it publishes has a picker and, in TRANSIENT_FAILURE, a status that is not OK.
//   I3  Generations, of what it publishes and of what it reports, never fall, and are none that it
//       has not been sent (P2).
//   I4  It acquires no address that it holds; it releases, and connects, none that it does not.
//   I5  It starts no child that runs, and updates, stops and wakes none that does not. A child
//       keeps its policy, and is none of those that stand above a cluster's own.
//   I6  It orders nothing that belongs to those above it: subchannel maps, the health and the
//       counting of endpoints, observations.

#pragma once

#include <functional>
#include <memory>

#include "lb/policy.hpp"
#include "messages/counting/striped.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

/// As registered.
struct CustomPolicy {
  std::function<std::unique_ptr<Policy>(const CustomConfig& config, PolicyContext context)> make;
  /// Of its pickers; null: nobody counts.
  std::shared_ptr<const StripedCounters<1>> pick_failures = nullptr;
};

/// Null when nobody registered it: see PolicyOptions::custom.
std::unique_ptr<Policy> make_leaf(const CustomConfig& config, PolicyContext context);

}  // namespace signalbox::lb
