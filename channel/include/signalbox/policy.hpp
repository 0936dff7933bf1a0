// SPDX-License-Identifier: Apache-2.0
//
// Custom policies — how calls are spread, in code of your own (gRFC A52).
//
//   RuntimeOptions::lb_policies ─▶ Runtime::start
//   a cluster's load_balancing_policy: TypedStruct "…/com.example.Quorum" {JSON}
//      ─▶ parse(JSON) ─▶ configuration, or NACK
//      ─▶ make(configuration, context) ─▶ Policy::step(event, now) ─▶ effects
//                                            Publish{picker} ─▶ Picker::pick, once for each call
//
// The door is that of signalbox's own policies: lb/policy.hpp says what a policy owes (P1 to P3),
// messages/lb_events.hpp what it hears and may order. It stands where round_robin would: below a
// priority, or below wrr_locality where it is named in there. Its endpoints, never null, are those
// of its priority, or of its locality. docs/custom_policy.md has a whole one.
//
// A policy may have children, and these may be any that a cluster can name, custom ones included:
// StartChild with make_lb_config(RoundRobinConfig{}), say. ChildSet knows what composites owe.
//
// Threads. parse may be called by several threads at once. One policy's make and steps are never
// concurrent, though on whatever thread of the runtime is free; two policies' may be. Nothing of
// it may block: other actors wait for the thread. Pickers are immutable, and are asked by any
// thread at any time, without a lock; they are destroyed on a thread of the runtime.
//
// Explanations (Router::explain) ask Picker::explain, which is pick() unless you write one: a
// picker that marks, counts or asks should, and tell why it chose whom.
//
// Endpoints. A picker that completes on a connection sets Complete::endpoint, a ChosenEndpoint that
// it owns: locality and endpoint as they were given, and the tracker of SubchannelStateChanged.
// What it leaves at null, outlier detection does not judge, and no hostname becomes an authority
// (A81).
//
// Determinism. A policy asks no clock (`now` is an argument), draws from PolicyContext::seed, and
// has no state outside of itself: it can be tested by calling step, and runs in many copies, one
// for each place where a cluster needs it, each made anew after a death. A picker draws from
// PickArgs::seed: see draw(). A retry brings the addresses that its call has tried in
// PickArgs::tried; a picker may pass over them.
//
// Errors. What parse returns as an error refuses the cluster: the NACK names the field and has the
// error's message, the cluster's last good version stays in use. A parse that throws is the same.
// A policy that throws, or orders what it may not (lb/leaf/custom.hpp, I1 to I6), dies: its last
// picker serves on, it is counted (signalbox_actor_deaths_total), RuntimeOptions::log is told, and
// it is made anew after a back-off of 100 ms to 10 s with the last configuration that it had
// processed, never the one that killed it. If there is none, its calls fail until another comes. A
// picker that throws fails that call with INTERNAL (signalbox_custom_pick_failures_total).
//
// Lifetime. The three are copied, and kept until the runtime is destroyed. A configuration lives as
// long as anybody has it, a policy until its cluster needs it no more. A picker owns the
// connections that it completes on (ConnectionPtr). When ~Runtime returns, no policy or picker is
// left.
//
// Version. Before 1.0 a minor version may add events, and change the rest: rebuild, and leave alone
// in step what you do not know. There is no binary interface; link what you compiled with.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"

#include "lb/child_set.hpp"
#include "lb/pick/pickers.hpp"
#include "lb/policy.hpp"
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

/// What is registered: RuntimeOptions::lb_policies. None of it may be empty.
struct CustomLbPolicy {
  /// The last segment of the TypedStruct's type URL: "com.example.Quorum" of
  /// "type.googleapis.com/com.example.Quorum". Printable ASCII without spaces, slashes or quotes;
  /// none of signalbox's own, and nothing that begins with "envoy.".
  std::string name;

  /// Reads `json`, the TypedStruct's value as an object ("{}" where there is none), and returns an
  /// object of a type of your own, not null. It depends on nothing but the text: equal texts are
  /// taken for equal configurations. An error says what must be and what was found:
  /// "quorum: must be a whole number, found \"two\"". At most 1000 bytes of it are sent.
  std::function<absl::StatusOr<CustomPolicyConfigPtr>(const std::string& json)> parse;

  /// Makes a policy, not null. The same configuration comes again in its first ConfigUpdated.
  std::function<std::unique_ptr<Policy>(const CustomPolicyConfigPtr& config, PolicyContext context)>
      make;
};

/// What your parse returned for this update.
/// Precondition: `update` was sent to your policy, and Config is what parse makes.
template <typename Config>
const Config& custom_config_of(const ConfigUpdated& update) {
  const auto* custom =
      update.config == nullptr ? nullptr : std::get_if<CustomConfig>(update.config.get());
  SIGNALBOX_INVARIANT(custom != nullptr && custom->parsed != nullptr,
                      "a custom policy is sent configurations of its own");
  return static_cast<const Config&>(*custom->parsed);
}

}  // namespace signalbox
