// SPDX-License-Identifier: Apache-2.0
//
// The contract of every load-balancing policy.
//
//     Event ──▶ Policy::step(event, now) ──▶ Effects, in the order to be run
//
// A policy is a value with one door. It never sends, sleeps, logs, counts, draws random numbers
// or asks the time; whatever it wants done, it returns. Two policies built alike that saw the
// same events at the same instants are equal, which is what the simulator relies on.
//
// What a policy owes its parent, for each ConfigUpdated{g}:
//   P1  It publishes a picker at once if it has never published one (queueing, if it must).
//   P2  When it and all below have processed g, it reports Applied{≥ g}; cumulative, never falling.
//       A leaf has processed g when it has heard of every address that it acquired: what it
//       publishes before Applied takes existing connections into account. Whoever forgets Applied
//       holds failover up for PolicyOptions::failover_timeout with each configuration.
//   P3  State and picker are published together; a state edge is published at once, a mere change
//       of the picker may be coalesced (RebuildSoon).

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <string>

#include "messages/counting/drop_counts.hpp"
#include "messages/counting/leaf_calls.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::lb {

class RequestLimits;
struct CustomPolicy;  ///< lb/leaf/custom.hpp
/// By the name that configurations have for them.
using CustomPolicies = std::map<std::string, CustomPolicy, std::less<>>;

/// What the embedding runtime may set for all its policies.
struct PolicyOptions {
  Duration failover_timeout = std::chrono::seconds(
      10);  ///< How long a priority may connect before the next is tried (A56).
  /// The most points on a ring of ring_hash, whatever its configuration says (A42); at least 1.
  std::uint64_t ring_size_cap = 4096;
  Duration connection_attempt_delay = std::chrono::milliseconds(
      250);  ///< How long an attempt has before the next address is tried too (A61).
  /// Endpoints are weighed as in A113, where pick_first shuffles and on the ring of ring_hash.
  bool weighted_shuffling = true;
  /// Calls in flight, by cluster (A32). Null: each cluster_impl counts for itself alone.
  std::shared_ptr<RequestLimits> request_limits = nullptr;
  /// Null: drops are not counted for operators.
  std::shared_ptr<DropCounters> drop_counters = nullptr;
  /// The target's. Null: calls below aggregates are not counted for operators.
  std::shared_ptr<CallCounters> call_counters = nullptr;
  std::shared_ptr<const CustomPolicies> custom;  ///< Those that the user registered; null: none.
  /// A priority that the configuration no longer names is kept for fifteen minutes, as one that is
  /// not needed is; off: it ends at once (A115).
  bool keep_removed_priorities = false;
  /// Of aggregates whose cluster does not say.
  AggregateMode aggregate_mode = AggregateMode::kPriority;
  /// In percent of endpoints that are fit, for tiered: below it a priority panics (ENV-17); 0:
  /// never.
  std::uint32_t panic_threshold = 0;
  /// For tiered: an endpoint that cannot be connected to is not healthy (ENV-24).
  bool unreachable_is_unhealthy = true;
  /// Where that stands which calls of sessions touch at random; outlives pickers and marks. Never
  /// null.
  std::pmr::memory_resource* session_memory = std::pmr::get_default_resource();
};

/// What a policy is born with.
struct PolicyContext {
  PolicyPath path;
  std::uint64_t seed = 0;                 ///< All of its chance.
  std::shared_ptr<const AskTarget> asks;  ///< Where its pickers' asks go; opaque to the core.
  PolicyOptions options;
  std::shared_ptr<Retirement> retirement;  ///< For its CallTrackers: make_tracked(). Null in tests.
};

class Policy {
 public:
  virtual ~Policy() = default;

  /// Consumes one event. Never blocks; throws only when an invariant is broken.
  virtual LbEffects step(const LbEvent& event, Instant now) = 0;
};

}  // namespace signalbox::lb
