// SPDX-License-Identifier: Apache-2.0
//
// Custom policies — load balancing by the program's own code (gRFC A52).
//
//   RuntimeOptions::lb_policies ─▶ Runtime::start
//   a cluster's load_balancing_policy: TypedStruct "…/com.example.Quorum" {JSON}
//      ─▶ parse(JSON) ─▶ configuration, or NACK
//      ─▶ make(configuration, context) ─▶ Policy::step(event, now) ─▶ effects
//                                            Publish{picker} ─▶ Picker::pick, for each pick
//
// The interface is that of signalbox's own policies: lb/policy.hpp has a policy's obligations (P1
// to P3), messages/lb_events.hpp its events and effects. A custom policy takes the place that
// round_robin would have: below a priority, or below a policy that names it in its configuration,
// such as wrr_locality. It gets the endpoints of that place, such as those of its locality:
// ConfigUpdated::endpoints, which is never null. docs/custom_policy.md has a complete example.
//
// A policy may have child policies of any type that a cluster can name, custom ones included: for
// example StartChild with make_lb_config(RoundRobinConfig{}). ChildSet (lb/tree/child_set.hpp)
// meets the obligations of a composite, which is a policy with children.
//
// Threads. Several threads may call parse at the same time. Calls of make and step for one policy
// are never concurrent, but they may run on any thread of the runtime. Different policies run
// concurrently. parse, make and step must not block: other actors wait for the thread. Pickers are
// immutable; any thread may call them at any time, without a lock. They are destroyed on a thread
// of the runtime.
//
// Explanations (Router::explain) call Picker::explain, which calls pick() by default. An
// explanation must change nothing. So override explain() when the pick() of the picker counts
// calls, sets marks (records that a session uses an address), or returns asks (requests to
// policies, such as "connect this address").
// Also override it to give the reason for the chosen endpoint.
//
// Endpoints. A picker that chooses a connection (Complete) also sets Complete::endpoint, a
// ChosenEndpoint that the picker owns. It has the locality and the endpoint from the policy's
// endpoints, and the tracker (a counter of calls) from SubchannelStateChanged. With a null tracker,
// outlier detection does not judge the endpoint. With a null Complete::endpoint, the endpoint's
// hostname never becomes the authority of a call (A81).
//
// Determinism. A policy reads no clock (`now` is an argument). It computes random numbers from
// PolicyContext::seed, and has no state outside of itself. A test can therefore call step directly.
// Each place in the policy tree that names the policy has its own instance. After an instance has
// died, a new one is made. A picker computes random numbers from PickArgs::seed: see draw().
// PickArgs::tried has addresses that the call avoids: it found their connections dead, or earlier
// attempts went there (RuntimeOptions::retry_elsewhere). A picker may leave out these addresses
// when it has others.
//
// Errors. An error from parse refuses the cluster: the NACK has the field's name and the error's
// message, and the cluster's last good version stays in use, unless the server has the feature
// fail_on_data_errors. An exception from parse, or a null configuration, counts as an error. A
// policy dies when it throws or breaks an invariant (lb/leaf/custom.hpp, I1 to I6). Its last picker
// stays in use, the death is counted (signalbox_actor_deaths_total), and RuntimeOptions::log
// receives the reason. The policy is made anew after a back-off of 100 ms to 10 s. The oldest
// configuration that is newer than all publications and reports of the policy (ReportApplied) is
// blamed for the death, and not used again. The new instance gets the newest configuration that
// came after it, else the last one that is not newer than these. Without either, calls fail until
// another one comes. A picker that throws fails that call with INTERNAL
// (signalbox_custom_pick_failures_total).
//
// Lifetime. The runtime copies name, parse and make, and keeps the copies until it is destroyed. A
// configuration lives as long as a reference to it, a policy as long as its cluster needs it. A
// picker owns the connections that it may choose (ConnectionPtr). No policy or picker is left when
// ~Runtime returns.
//
// Version. Before 1.0, a minor version may add events and change every other part of the interface.
// Compile your policies again for each version, and ignore unknown events in step. There is no
// stable binary interface; link the version that you compiled with.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"

#include "lb/pick/pickers.hpp"
#include "lb/policy.hpp"
#include "lb/tree/child_set.hpp"
#include "lb/tree/published.hpp"
#include "messages/invariant.hpp"
#include "messages/lb_config.hpp"
#include "messages/lb_events.hpp"
#include "messages/pick.hpp"

namespace signalbox {

using lb::ChildSet;
using lb::make_ask_picker;
using lb::make_connection_picker;
using lb::make_drop_picker;
using lb::make_fail_picker;
using lb::make_queue_picker;
using lb::Policy;
using lb::PolicyContext;
using lb::PolicyOptions;
using lb::Published;

/// One custom policy, to be registered in RuntimeOptions::lb_policies. No field may be empty.
struct CustomLbPolicy {
  /// The last segment of the TypedStruct's type URL: "com.example.Quorum" for
  /// "type.googleapis.com/com.example.Quorum". Printable ASCII without spaces, '/', '\' and '"'.
  /// Three kinds of names are refused: those of signalbox's own policies, these names with the
  /// suffix "_experimental", and names that begin with "envoy.".
  std::string name;

  /// Reads `json`, the TypedStruct's value as an object ("{}" without a value), and returns an
  /// object of the program's own type, not null. The result may depend on the text alone, because
  /// signalbox takes equal texts for equal configurations. An error says what is required and what
  /// was found: "quorum: must be a whole number, found \"two\"". At most 1000 bytes of the error
  /// are sent to the control plane.
  std::function<absl::StatusOr<CustomPolicyConfigPtr>(const std::string& json)> parse;

  /// Makes a policy; never returns null. The first ConfigUpdated that the policy gets repeats this
  /// configuration.
  std::function<std::unique_ptr<Policy>(const CustomPolicyConfigPtr& config, PolicyContext context)>
      make;
};

/// The program's own configuration in this update: the object that parse returned.
///
/// Precondition: `update` was sent to a custom policy, and the parse of its registration returned a
/// Config.
template <typename Config>
const Config& custom_config_of(const ConfigUpdated& update) {
  const auto* custom =
      update.config == nullptr ? nullptr : std::get_if<CustomConfig>(update.config.get());
  SIGNALBOX_INVARIANT(custom != nullptr && custom->parsed != nullptr,
                      "a custom policy is sent configurations of its own");
  return static_cast<const Config&>(*custom->parsed);
}

}  // namespace signalbox
