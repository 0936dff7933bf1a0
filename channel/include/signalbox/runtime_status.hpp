// SPDX-License-Identifier: Apache-2.0
//
// RuntimeStatus — what a runtime is doing at one moment: its targets, clusters, priorities,
// localities and endpoints, each with its state and the reason, and the last changes of priority.
//
//   signalbox::RuntimeStatus status = runtime->status();
//   for (const auto& target : status.targets) use(target.name, target.ready);
//
//   actors ─ immutable pieces ─▶ actors/status_board ─▶ Runtime::status ─▶ [RuntimeStatus]
//                                                     admin pages, channelz, health ◀─┘
//
// A RuntimeStatus is a plain value. It owns all that it contains, and the runtime never changes it
// later. Any thread may read it, also after the runtime has ended.
//
// Actors publish pieces of the status at different moments, so two parts of one status may disagree
// for a short time: for example, a subchannel is READY and its priority still CONNECTING. Calendar
// times are computed from the steady clock when the status is made, so the time of one event may
// differ by a microsecond between two statuses.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "messages/cluster.hpp"
#include "messages/connectivity.hpp"
#include "messages/endpoints.hpp"
#include "messages/ids.hpp"
#include "messages/observation.hpp"
#include "messages/resource_dump.hpp"

namespace signalbox {

/// One address of an endpoint. The address has one subchannel, or none.
struct AddressStatus {
  Address address;
  /// The state of the subchannel. Whether connected or not, an address has one of three other
  /// states while outlier detection ejects it (kEjected), health checks find it unhealthy
  /// (kUnhealthy), or EDS drains it (kDraining). nullopt: no policy uses the address, so it has no
  /// subchannel.
  std::optional<EndpointState> state;
  /// The state of the connection alone: ejection and health do not change it. IDLE without a
  /// subchannel.
  ConnectivityState connectivity = ConnectivityState::kIdle;
  /// Since when `state` holds. nullopt without a subchannel.
  std::optional<WallTime> since;
  /// Why the address is not usable: the error of the last attempt to connect while `connectivity`
  /// is TRANSIENT_FAILURE, else in kEjected and kUnhealthy the reason of outlier detection or of
  /// the health check. OK: there is no reason.
  absl::Status reason;
  /// How often outlier detection has ejected the address since its subchannel began.
  std::uint32_t ejections = 0;
  /// Calls that run on the subchannel's present connections now, from all targets and clusters that
  /// share a connection. Calls that wait for a stream do not count.
  std::int64_t calls_in_flight = 0;
};

/// One endpoint of EDS or DNS.
struct EndpointStatus {
  std::vector<AddressStatus> addresses;  ///< The preferred address is first; never empty.
  std::string hostname;                  ///< Empty: unknown.
  HealthStatus eds_health = HealthStatus::kUnknown;
  std::uint32_t weight = 1;  ///< Within its locality.
};

struct LocalityStatus {
  LocalityName name;
  std::uint32_t weight = 1;  ///< Within its priority.
  /// First the endpoints that EDS reports as HEALTHY, UNKNOWN or DRAINING, then the DEGRADED ones,
  /// then the UNHEALTHY and TIMEOUT ones.
  std::vector<EndpointStatus> endpoints;
};

/// One priority of a leaf, or one leaf of an aggregate.
struct PriorityStatus {
  /// In an aggregate: the name of the leaf. In a leaf: the name that the policy `priority` has for
  /// its child; empty in tiered mode.
  std::string name;
  /// True: the priority has been tried, and `state`, `since` and `reason` describe it; in tiered
  /// mode these fields are those of its best address. False: the priority's endpoints have not been
  /// connected to, usually because no better priority has failed.
  bool started = false;
  ConnectivityState state = ConnectivityState::kIdle;
  std::optional<WallTime> since;  ///< Since when `state` holds; nullopt unless started.
  absl::Status reason;            ///< Why `state` is TRANSIENT_FAILURE; OK in other states.
  /// The end of the time that the priority has to connect (RuntimeOptions::failover_timeout); the
  /// next priority is then tried, too. nullopt: no such time runs.
  std::optional<WallTime> window_ends;
  /// In tiered mode: the share of the aggregate's calls that this priority gets, in percent.
  std::optional<std::uint32_t> load_percent;
  std::vector<LocalityStatus> localities;  ///< Empty in an aggregate.
};

enum class ClusterKind : std::uint8_t { kEds, kDns, kAggregate, kFailed };

/// A cluster in the policy tree of one target. A leaf that is used directly and below an aggregate
/// is listed twice, because it has policies and subchannels of its own in each place.
struct ClusterStatus {
  ClusterName name;
  ClusterName aggregate;  ///< The aggregate above this leaf; empty: there is none.
  ClusterKind kind = ClusterKind::kEds;
  /// Why the cluster has no valid configuration (kFailed), or why a leaf's endpoints are unknown;
  /// else OK.
  absl::Status failure;
  AggregateMode mode = AggregateMode::kPriority;  ///< Only of an aggregate.
  std::vector<ClusterName> leaves;  ///< Only of an aggregate; the preferred leaf first.
  std::string service_name;         ///< The EDS resource or the DNS name.
  std::uint32_t max_requests = 0;   ///< The limit of concurrent calls; 0 unless kEds or kDns.
  /// The index in `priorities` of the priority that carries the calls. nullopt: no priority carries
  /// calls, or the mode is kTiered.
  std::optional<std::size_t> active;
  std::vector<PriorityStatus> priorities;
};

struct TargetStatus {
  std::string name;  ///< As the program wrote it: "xds:///orders".
  ConnectivityState state = ConnectivityState::kConnecting;
  std::optional<WallTime> since;  ///< Since when `state` holds.
  /// True: calls can be sent, because a configuration is in use, and `state` is READY or IDLE.
  bool ready = false;
  /// Why no configuration is in use. OK: a configuration is in use, or the first has not come yet.
  absl::Status failure;
  /// The number of the configuration that picks see; 0: none yet. It rises with each change.
  Generation generation = 0;
  std::optional<WallTime> configured;  ///< When the policies last got a configuration.
  /// Calls that have ended OK for the application; nullopt: not counted (MetricsDetail::kNone).
  std::optional<std::int64_t> calls_succeeded;
  std::optional<std::int64_t> calls_failed;  ///< Calls with any other status; nullopt as above.
  std::vector<ClusterStatus>
      clusters;  ///< In the order of their names, each leaf after its aggregate.
};

/// "first", "failed", "timed out", …
absl::string_view to_string(PriorityChangeReason reason);

/// The index of the priority that carries a cluster's calls changed: calls moved to another
/// priority, no priority carries them any more, or one does again. After a new configuration the
/// index may change although the calls stay; from_name and to_name are then equal.
struct PriorityChange {
  std::uint64_t number = 0;  ///< Rises by one with each change of the runtime; the first is 1.
  WallTime at;
  std::string target;
  ClusterName cluster;
  ClusterName aggregate;            ///< See ClusterStatus::aggregate.
  std::optional<std::size_t> from;  ///< An index; nullopt: no priority carried calls before.
  std::optional<std::size_t> to;    ///< An index; nullopt: no priority carries calls now.
  std::string from_name;            ///< PriorityStatus::name of `from`.
  std::string to_name;
  PriorityChangeReason reason = PriorityChangeReason::kFirst;
  /// What was wrong with the priority that calls left: the text of its failure. May be empty.
  std::string details;
  /// How long no priority carried calls before this change; zero: a priority carried calls until
  /// this change, or no priority ever did.
  Duration without{};
  /// How much of its time to connect (failover_timeout) the priority that last carried calls had
  /// left. nullopt: that time was over, or did not run, or the priority was removed.
  std::optional<Duration> window_left;
};

struct RuntimeStatus {
  /// The number of priority changes that are kept.
  static constexpr std::size_t kChanges = 64;

  std::string version;  ///< signalbox's own: "0.1.0".
  WallTime made;        ///< When this status was made.
  WallTime started;     ///< When the runtime was started.
  std::string node_id;
  /// Whether every target is ready. True without targets.
  bool ready = false;
  std::vector<TargetStatus> targets;    ///< In the order of their names.
  std::vector<PriorityChange> changes;  ///< The last changes, at most kChanges, oldest first.
};

}  // namespace signalbox
