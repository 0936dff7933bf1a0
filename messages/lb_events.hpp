// SPDX-License-Identifier: Apache-2.0
//
// The events that load balancing receives, and the effects that it returns.
//
//   actor: mailbox ─▶ event ─▶ Policy::step ─▶ effects ─▶ actor: run, in order
//
// Events are past tense, effects imperative. Every type is a plain value, copyable and
// default-constructible, so that it can be a message between actors.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "messages/connectivity.hpp"
#include "messages/endpoints.hpp"
#include "messages/ids.hpp"
#include "messages/lb_config.hpp"
#include "messages/load_listener.hpp"
#include "messages/observation.hpp"
#include "messages/pick.hpp"
#include "messages/session.hpp"
#include "messages/xds_config.hpp"

namespace signalbox {

// --- how many hosts are fit for calls, for the policy `tiered` -----------------

/// A number of endpoints, and the sum of their weights.
struct HostTally {
  std::uint64_t hosts = 0;
  std::uint64_t weight = 0;

  friend bool operator==(const HostTally&, const HostTally&) = default;
};

struct PriorityHosts {
  /// Endpoints that may get calls and can be reached: see lb/health/host_count.hpp.
  HostTally healthy;
  HostTally degraded;  ///< Endpoints that are DEGRADED in EDS, and otherwise as `healthy`.
  HostTally total;     ///< All endpoints, except those that are DRAINING in EDS.

  friend bool operator==(const PriorityHosts&, const PriorityHosts&) = default;
};

/// How many of a policy's endpoints are fit for calls. A leaf policy, such as round_robin, reports
/// one priority, and counts all fit endpoints as `healthy`. A leaf cluster reports one entry for
/// each of its priorities.
struct HostReport {
  std::vector<PriorityHosts> priorities;
  std::uint32_t overprovisioning_percent = 140;
  /// True: the health of a priority is computed from weights, not from numbers of hosts.
  bool weighted = false;

  friend bool operator==(const HostReport&, const HostReport&) = default;
};

using HostReportPtr = std::shared_ptr<const HostReport>;

// --- events ---------------------------------------------------------------

/// A configuration for this policy and everything below it.
struct ConfigUpdated {
  Generation generation = 0;
  LbConfigPtr config;
  XdsConfigPtr xds;  ///< The source of `config`; cds looks its cluster up in it.
  /// The endpoints that the policy may use; null for `cds` and the policies above it.
  EndpointsPtr endpoints;
};

/// A child published: state and picker always travel together, so that a parent never pairs a
/// new state with an old picker.
struct ChildStateChanged {
  ChildName child;
  ConnectivityState state = ConnectivityState::kIdle;
  absl::Status status;  ///< The reason, in TRANSIENT_FAILURE.
  PickerPtr picker;
  Generation generation = 0;      ///< Of the newest configuration that the picker knows.
  HostReportPtr hosts = nullptr;  ///< Null: the child does not count its endpoints.
};

/// The child and all policies below it have processed every configuration up to `generation`.
struct ChildApplied {
  ChildName child;
  Generation generation = 0;
};

/// The child's actor died, and will be restarted. Until the new actor reports, the parent uses the
/// child's last picker, and does not wait for the child's ChildApplied.
struct ChildDied {
  ChildName child;
};

/// The child suspects that its addresses are outdated, and asks for names to be resolved again
/// (A37-33). A policy passes the request to its parent by the effect RequestReresolution
/// (ChildSet::hear_other), unless its configuration says to stop such requests.
struct ChildAskedReresolution {
  ChildName child;
};

/// The connection, the health or the tracker of an address changed, or a policy acquired the
/// address. All policies that hold the address get its changes in the same order.
struct SubchannelStateChanged {
  Address address;
  ConnectivityState state = ConnectivityState::kIdle;  ///< Independent of `healthy`.
  bool healthy = true;       ///< False: ejected, or its health checks fail; the connection stays.
  absl::Status status;       ///< The reason, in TRANSIENT_FAILURE or when unhealthy.
  ConnectionPtr connection;  ///< Set exactly in READY.
  /// Counts the endpoint's calls (TrackEndpoints). Null: nothing counts them.
  CallTrackerPtr tracker = nullptr;
};

/// The address of a session's host has no holder and no subchannel. This event goes to the policy
/// that ordered KeepSessions.
struct SubchannelGone {
  Address address;
};

struct TimerFired {
  TimerId timer;
};

/// A pick asked the policy that built its picker to leave IDLE, or to connect or create a
/// subchannel.
struct PickAsked {
  PickAsk ask;
};

/// Asks the policy to leave IDLE, that is, to connect.
struct IdleExitRequested {};

/// Follows RebuildSoon: all messages that were in the mailbox when RebuildSoon was ordered have
/// been handled.
struct RebuildDue {
  /// How long the last step that published a new picker took, as the policy's actor measured it. 0:
  /// not measured. Always 0 in simulations, because a step takes no virtual time.
  Duration build_cost{};
};

using LbEvent = std::variant<ConfigUpdated,
                             ChildStateChanged,
                             ChildApplied,
                             ChildDied,
                             ChildAskedReresolution,
                             SubchannelStateChanged,
                             SubchannelGone,
                             TimerFired,
                             PickAsked,
                             IdleExitRequested,
                             RebuildDue>;

// --- which endpoints are fit for calls -------------------------------------

/// The parts that find endpoints unfit for calls. A judge cannot revoke another judge's finding.
enum class HealthJudge : std::uint8_t { kOutlierDetection, kHealthChecks };
inline constexpr std::size_t kHealthJudges = 2;

/// The endpoints that a judge finds unfit, by address, and the reasons.
using UnhealthyEndpoints = std::map<Address, absl::Status>;

// --- effects --------------------------------------------------------------

struct StartChild {
  ChildName child;
  ConfigUpdated update;
};

struct UpdateChild {
  ChildName child;
  ConfigUpdated update;
};

struct StopChild {
  ChildName child;
};

/// Asks the child to leave IDLE.
struct ExitIdleChild {
  ChildName child;
};

struct StartTimer {
  TimerId timer;
  Duration delay{};
};

struct CancelTimer {
  TimerId timer;
};

/// Gives the parent this state together with its picker.
struct Publish {
  ConnectivityState state = ConnectivityState::kIdle;
  absl::Status status;
  PickerPtr picker;
  Generation generation = 0;      ///< Of the newest configuration that the picker knows.
  HostReportPtr hosts = nullptr;  ///< Null: the policy does not count its endpoints.
};

/// Tells the parent that this policy and all policies below have processed `generation`.
struct ReportApplied {
  Generation generation = 0;
};

/// Orders one RebuildDue event, which comes after all messages that are in the actor's mailbox now.
/// So a burst of messages leads to one new picker. A core orders no second RebuildDue before the
/// first has come.
struct RebuildSoon {};

/// How the subchannels of a cluster connect.
struct SubchannelSettings {
  ClusterName cluster;  ///< The label of the metrics.
  Duration connect_timeout = std::chrono::seconds(20);
  UpstreamTlsPtr tls = nullptr;  ///< Null: RuntimeOptions::channel_credentials are used (A29).
  HealthChecksPtr health_checks = nullptr;
  ProbeExceptionsPtr probe_exceptions = nullptr;
  std::string authority = {};         ///< The target's authority, which TLS handshakes name.
  std::uint32_t max_connections = 1;  ///< To one address (A105); at least 1.

  friend bool operator==(const SubchannelSettings& left, const SubchannelSettings& right) {
    return left.cluster == right.cluster && left.connect_timeout == right.connect_timeout &&
           left.max_connections == right.max_connections && left.authority == right.authority &&
           same_tls(left.tls, right.tls) && same_checks(left.health_checks, right.health_checks) &&
           same_exceptions(left.probe_exceptions, right.probe_exceptions);
  }
};

using SubchannelSettingsPtr = std::shared_ptr<const SubchannelSettings>;

/// Opens or updates the subchannel map that this policy's descendants share. From now on the
/// descendants apply `generation`.
struct ServeSubchannels {
  SubchannelSettings settings;
  Generation generation = 0;
  /// The cluster's endpoints. Metrics count an address in the first priority that has it. Null: no
  /// endpoints are known.
  EndpointsPtr endpoints = nullptr;
};

/// All descendants have applied `generation`, so the map drops the subchannels that it kept only
/// until then.
struct SettleSubchannels {
  Generation generation = 0;
};

/// Closes the map: no leaf cluster is left below this policy.
struct CloseSubchannels {};

struct AcquireSubchannel {
  Address address;
};

struct ReleaseSubchannel {
  Address address;
};

struct Connect {
  Address address;
};

/// Says which endpoints are unfit. All policies that hold such an endpoint's address learn that it
/// is unfit. The connectivity state and the connection of an unfit endpoint do not change (A61).
/// The table replaces the previous table of the same judge. An endpoint is healthy again when no
/// judge's table contains it.
struct SetEndpointHealth {
  HealthJudge judge = HealthJudge::kOutlierDetection;
  std::shared_ptr<const UnhealthyEndpoints> unhealthy;  ///< Null: none.
};

/// Sets the trackers that count the calls of each address from now on. The table replaces the
/// previous table.
struct TrackEndpoints {
  using Table = std::map<Address, CallTrackerPtr>;
  std::shared_ptr<const Table> trackers;  ///< Null: no calls are counted.
};

/// Keeps sessions on their hosts (A75-24 to A75-36). The table `marks` has each host's address and
/// the time when a session last used the address. It replaces the previous table. From now on this
/// policy gets the state of each address in the table, whichever policies hold the address. It gets
/// SubchannelGone when the address has no subchannel any more. When the last other policy releases
/// an address that sessions used within `idle_timeout`, the subchannel map holds the address for
/// this policy. The hold ends when another policy acquires the address, when the address leaves
/// the table, or when no session has used it for `idle_timeout`.
struct KeepSessions {
  Duration idle_timeout{};
  /// Null: no sessions; addresses that were held for sessions are released.
  SessionMarksPtr marks;
};

/// Asks the endpoints of these connections for their load, each on a stream, and gives the reports
/// to the LoadListeners (A51). The table replaces the policy's previous table. Entries of the
/// previous table with the same period keep their streams.
struct WatchLoad {
  struct Entry {
    ConnectionPtr connection;  ///< Never null.
    LoadListenerPtr listener;  ///< Never null.

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  Duration period{};  ///< How often an endpoint should report; 0: as often as its server allows.
  std::vector<Entry> entries;

  friend bool operator==(const WatchLoad&, const WatchLoad&) = default;
};

/// Sends ChildAskedReresolution to the parent.
struct RequestReresolution {};

struct Observe {
  Observation observation;
};

using LbEffect = std::variant<StartChild,
                              UpdateChild,
                              StopChild,
                              ExitIdleChild,
                              StartTimer,
                              CancelTimer,
                              Publish,
                              ReportApplied,
                              RebuildSoon,
                              ServeSubchannels,
                              SettleSubchannels,
                              CloseSubchannels,
                              AcquireSubchannel,
                              ReleaseSubchannel,
                              Connect,
                              SetEndpointHealth,
                              TrackEndpoints,
                              KeepSessions,
                              WatchLoad,
                              RequestReresolution,
                              Observe>;
using LbEffects = std::vector<LbEffect>;

}  // namespace signalbox
