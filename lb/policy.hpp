// SPDX-License-Identifier: Apache-2.0
//
// The contract of every load-balancing policy.
//
//     Event ──▶ Policy::step(event, now) ──▶ Effects, in the order to be run
//
// A policy is a value with one entry. It never sends, sleeps, logs or counts: it returns effects
// for all of that. It reads no clock, and computes random numbers only from its seed
// (PolicyContext). Two policies are equal if they were made alike, got the same events at the same
// times, and their trackers saw the same calls. The simulator relies on this.
//
// The duties of a policy to its parent, for each ConfigUpdated{g}:
//   P1  It publishes a picker in the same step if it has never published one. The picker may make
//       calls wait.
//   P2  When the policy and all policies below have processed g, it returns ReportApplied{≥ g}. A
//       report covers all earlier generations, and the reported number never falls. A leaf has
//       processed g when every address that it acquired has reported its state. So the state that
//       it has published takes existing connections into account. A policy that forgets
//       ReportApplied delays failover by PolicyOptions::failover_timeout with each configuration.
//   P3  State and picker are published together. A change of the state is published at once. A
//       change of only the picker may wait for the end of a burst of events (RebuildSoon). A change
//       that lets no pick go wrong may wait longer (lb/leaf/picker_pace.hpp).

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <string>

#include "messages/counting/drop_counts.hpp"
#include "messages/counting/endpoint_calls.hpp"
#include "messages/counting/leaf_calls.hpp"
#include "messages/counting/load_book.hpp"
#include "messages/lb_events.hpp"

namespace signalbox::lb {

class RequestLimits;
struct CustomPolicy;  ///< lb/leaf/custom.hpp
/// The key is the policy's name in configurations.
using CustomPolicies = std::map<std::string, CustomPolicy, std::less<>>;

/// The options that the embedding runtime sets for all its policies.
struct PolicyOptions {
  /// How long a priority may connect before the next is tried (A56), and how long priority, tiered
  /// and leaf_tiers wait for their children to answer a configuration.
  Duration failover_timeout = std::chrono::seconds(10);
  /// The most points on a ring of ring_hash, whatever its configuration says (A42); at least 1.
  std::uint64_t ring_size_cap = 4096;
  /// How long an attempt has before the next address is tried too (A61). PickFirst limits it to
  /// 100 ms to 2 s.
  Duration connection_attempt_delay = std::chrono::milliseconds(250);
  /// The shortest time between two pickers of a leaf policy, if picks by the older one do no harm
  /// meanwhile (lb/leaf/picker_pace.hpp). 0: after the end of a burst of events, a picker waits
  /// only if pickers cost much time. Runtimes set 5 ms.
  Duration picker_interval = Duration::zero();
  /// True: pick_first's shuffle and the tables of ring_hash and maglev weigh endpoints by A113's
  /// rule. False: pick_first shuffles evenly, and ring_hash and maglev use WeightRule::kProduct.
  bool weighted_shuffling = true;
  /// Counts the calls in flight of each cluster (A32). Null: each cluster_impl counts only its own
  /// calls.
  std::shared_ptr<RequestLimits> request_limits = nullptr;
  /// Counts dropped calls for the metrics. Null: they are not counted.
  std::shared_ptr<DropCounters> drop_counters = nullptr;
  /// Counts calls by endpoint for the metrics. Null: they are not counted, at no cost.
  std::shared_ptr<EndpointCounters> endpoint_counters = nullptr;
  /// The target that the policies are in the tree of, for the metrics.
  std::string target = {};
  /// True: the metrics of weighted_round_robin have the locality of its endpoints.
  bool metrics_by_locality = false;
  /// Counts the calls to aggregates by leaf, for the metrics. Null: they are not counted.
  std::shared_ptr<CallCounters> call_counters = nullptr;
  /// Counts the load of clusters that have it reported (A27). Null: no load is counted.
  std::shared_ptr<LoadBook> load_book = nullptr;
  /// True: endpoints can be asked for load reports on their connections (WatchLoad). False:
  /// weighted_round_robin takes the reports of calls, even if its configuration wants streams.
  bool load_streams = true;
  /// The policies that the program registered; null: none.
  std::shared_ptr<const CustomPolicies> custom;
  /// How many priorities below the one in use stay connected (lb/tree/priority_rules.hpp); of an
  /// aggregate's leaves at most one. 0: as in A56, a priority connects only when those above it
  /// cannot take the calls.
  std::uint32_t standby_priorities = 0;
  /// True: a priority that the configuration no longer names is kept for fifteen minutes, like a
  /// priority that is not needed. False: it is stopped as soon as the policy has chosen again
  /// (A115).
  bool keep_removed_priorities = false;
  /// How calls are spread over the leaves of aggregates that set no mode themselves.
  AggregateMode aggregate_mode = AggregateMode::kPriority;
  /// For the policy tiered, when its aggregate sets no threshold. When all priorities together
  /// cannot take all calls, the calls of a priority with less than this percentage of fit endpoints
  /// go to all of its endpoints but DRAINING ones ("panic", ENV-17). 0: never.
  std::uint32_t panic_threshold = 0;
  /// For the policy tiered, and for zone-aware routing: an endpoint that cannot be connected to
  /// counts as unhealthy (ENV-24).
  bool unreachable_is_unhealthy = true;
  /// The locality of this client (the bootstrap's node), for zone-aware routing and the metric of
  /// zones. Without a zone: not known.
  LocalityName caller = {};
  /// Memory for the data of sessions' hosts (Seats, SessionMarks), usually a PagePool. It must
  /// outlive them, and all pickers. Never null.
  std::pmr::memory_resource* session_memory = std::pmr::get_default_resource();
};

/// The input for making a policy.
struct PolicyContext {
  PolicyPath path;
  std::uint64_t seed = 0;  ///< The source of all random choices of the policy.
  /// Receives asks of the policy's pickers, such as "connect this".
  std::shared_ptr<const AskTarget> asks;
  PolicyOptions options;
  /// Destroys Tracked objects when no call uses them any more. May be null in tests.
  std::shared_ptr<Retirement> retirement;
  /// The leaf cluster above the policy, for its Observations; empty for the cluster's cds, and for
  /// policies above that.
  ClusterName cluster = {};
};

class Policy {
 public:
  virtual ~Policy() = default;

  /// Consumes one event. Waits at most for short locks; throws only when an invariant is broken. A
  /// policy of the program's own may also throw an exception of its own.
  virtual LbEffects step(const LbEvent& event, Instant now) = 0;
};

}  // namespace signalbox::lb
