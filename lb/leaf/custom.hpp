// SPDX-License-Identifier: Apache-2.0
//
// custom — wraps a policy that the user registered, and checks that the policy keeps its promises
// (gRFC A52).
//
//   Event ─▶ [custom] ─▶ the user's step ─▶ effects, all checked ─▶ shell
//                                        └▶ a broken promise: the actor dies, and its last picker
//                                           goes on serving
//   pick ─▶ custom_picker ─▶ the user's picker
//
// If the user's policy throws, the actor around it dies, and is restarted with back-off. A death is
// blamed on the oldest configuration that is newer than all publications and reports of the policy;
// the restarted policy does not get that configuration again. If a step throws or breaks a promise,
// none of its effects runs, not even those before the faulty one. ChildAskedReresolution does not
// reach the user's policy: the request goes to the parent.
//
// Invariants: the promises of the user's policy. lb/policy.hpp has P1 to P3.
//   I1  The step that takes the policy's first configuration publishes a picker (P1). The policy
//       reports no configuration as applied before it has published a picker.
//   I2  Each publication has a picker. In TRANSIENT_FAILURE it also has a status that is not OK.
//   I3  The generations of its publications never fall, and neither do those of its reports. None
//       is newer than the newest generation that it was sent (P2).
//   I4  It acquires no address that it holds. It releases and connects only addresses that it
//       holds.
//   I5  It starts no child that runs. It updates, stops and tells to leave IDLE only children that
//       run. A child keeps its kind of policy. No child is cluster_manager, cds, tiered, or a
//       policy of which a cluster has one: outlier_detection, cluster_impl, override_host,
//       leaf_tiers.
//   I6  It returns none of these effects: ServeSubchannels, SettleSubchannels, CloseSubchannels,
//       SetEndpointHealth, TrackEndpoints, KeepSessions, WatchLoad, Observe. It starts no timer
//       with a negative delay.

#pragma once

#include <functional>
#include <memory>

#include "lb/policy.hpp"
#include "messages/counting/striped.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

/// A policy as the user registered it.
struct CustomPolicy {
  std::function<std::unique_ptr<Policy>(const CustomConfig& config, PolicyContext context)> make;
  /// Counts picks that failed because the policy's picker threw or returned an invalid result;
  /// null: they are not counted.
  std::shared_ptr<const StripedCounters<1>> pick_failures = nullptr;
};

/// Makes the policy; null: PolicyOptions::custom does not have it.
std::unique_ptr<Policy> make_leaf(const CustomConfig& config, PolicyContext context);

}  // namespace signalbox::lb
