// SPDX-License-Identifier: Apache-2.0
//
// What load balancing can hear (events) and what it can want done (effects).
//
//   shell: mailbox ─▶ event ─▶ Policy::step ─▶ effects ─▶ shell: run, in order
//
// Events are past tense, effects imperative. Everything is a plain value, copyable and
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
#include "messages/observation.hpp"
#include "messages/pick.hpp"
#include "messages/session.hpp"
#include "messages/xds_config.hpp"

namespace signalbox {

// --- how many hosts are fit, for tiered (ENV-7, ENV-9, ENV-24) -------------

/// Endpoints by number, and by weight.
struct HostTally {
  std::uint64_t hosts = 0;
  std::uint64_t weight = 0;

  friend bool operator==(const HostTally&, const HostTally&) = default;
};

struct PriorityHosts {
  HostTally healthy;   ///< Fit, and not known to be unreachable.
  HostTally degraded;  ///< The same of those that EDS calls DEGRADED.
  HostTally total;

  friend bool operator==(const PriorityHosts&, const PriorityHosts&) = default;
};

/// Of the endpoints that a policy was given. A leaf policy has one priority, whose endpoints are
/// all `healthy` or none; a leaf cluster has its own.
struct HostReport {
  std::vector<PriorityHosts> priorities;
  std::uint32_t overprovisioning_percent = 140;
  bool weighted = false;  ///< Weights count, not numbers.

  friend bool operator==(const HostReport&, const HostReport&) = default;
};

using HostReportPtr = std::shared_ptr<const HostReport>;

// --- events ---------------------------------------------------------------

/// A configuration for this policy and everything below it.
struct ConfigUpdated {
  Generation generation = 0;
  LbConfigPtr config;
  XdsConfigPtr xds;        ///< The world that `config` came from; cds looks its cluster up here.
  EndpointsPtr endpoints;  ///< The policy's slice; null above cds.
};

/// A child published: state and picker always travel together, so that a parent never pairs a
/// new state with an old picker.
struct ChildStateChanged {
  ChildName child;
  ConnectivityState state = ConnectivityState::kIdle;
  absl::Status status;  ///< Why, in TRANSIENT_FAILURE.
  PickerPtr picker;
  Generation generation = 0;      ///< The newest configuration that the picker knows.
  HostReportPtr hosts = nullptr;  ///< Null: the policy does not say.
};

/// The child and all below it have processed every configuration up to `generation`.
struct ChildApplied {
  ChildName child;
  Generation generation = 0;
};

/// The child's actor died. Its last picker keeps serving; the shell restarts it. Until then it
/// counts as having answered.
struct ChildDied {
  ChildName child;
};

/// The child's addresses look stale to it: it asks for names to be resolved again (A37-33). The
/// request goes on upwards by RequestReresolution: ChildSet::hear_other has the rule, and a policy
/// that stops such requests has a rule of its own.
struct ChildAskedReresolution {
  ChildName child;
};

/// An endpoint's connection, or its health, changed. Sent to every holder in the same order.
struct SubchannelStateChanged {
  Address address;
  ConnectivityState state = ConnectivityState::kIdle;  ///< Raw connectivity.
  bool healthy = true;       ///< False: ejected, or health checks failing; the connection stays.
  absl::Status status;       ///< Why, in TRANSIENT_FAILURE or when unhealthy.
  ConnectionPtr connection;  ///< Set exactly in READY.
  /// Who counts the endpoint's calls (TrackEndpoints); null: nobody.
  CallTrackerPtr tracker = nullptr;
};

/// Nobody holds the address any more: it has no subchannel. Told to who keeps sessions
/// (KeepSessions).
struct SubchannelGone {
  Address address;
};

struct TimerFired {
  TimerId timer;
};

/// A pick told its ask.
struct PickAsked {
  PickAsk ask;
};

/// Somebody wants the policy out of IDLE: begin to connect.
struct IdleExitRequested {};

/// The burst of messages that was waiting when RebuildSoon was ordered has passed.
struct RebuildDue {};

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

// --- who is fit for calls -------------------------------------------------

/// Who may find an endpoint unfit for calls. None undoes what another one found.
enum class HealthJudge : std::uint8_t { kOutlierDetection, kHealthChecks };
inline constexpr std::size_t kHealthJudges = 2;

/// Those that a judge finds unfit, by address, and why.
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

/// Tells the parent, at once: the state, and the picker that goes with it.
struct Publish {
  ConnectivityState state = ConnectivityState::kIdle;
  absl::Status status;
  PickerPtr picker;
  Generation generation = 0;      ///< The newest configuration that the picker knows.
  HostReportPtr hosts = nullptr;  ///< Null: the policy does not say.
};

/// Tells the parent that this policy and all below have processed `generation`.
struct ReportApplied {
  Generation generation = 0;
};

/// Tells the policy RebuildDue behind the messages that wait now. One order is enough: a core
/// keeps a dirty flag.
struct RebuildSoon {};

/// How subchannels of a cluster connect.
struct SubchannelSettings {
  ClusterName cluster;  ///< Label of what is observed.
  Duration connect_timeout = std::chrono::seconds(20);
  UpstreamTlsPtr tls = nullptr;  ///< Null: as the runtime connects unasked (A29).
  HealthChecksPtr health_checks = nullptr;
  ProbeExceptionsPtr probe_exceptions = nullptr;
  std::string authority = {};  ///< What TLS handshakes ask for: the target's authority.

  friend bool operator==(const SubchannelSettings& left, const SubchannelSettings& right) {
    return left.cluster == right.cluster && left.connect_timeout == right.connect_timeout &&
           left.authority == right.authority && same_tls(left.tls, right.tls) &&
           same_checks(left.health_checks, right.health_checks) &&
           same_exceptions(left.probe_exceptions, right.probe_exceptions);
  }
};

/// Opens (or updates) the subchannel map that this policy's descendants share; `generation` is
/// being applied from now on.
struct ServeSubchannels {
  SubchannelSettings settings;
  Generation generation = 0;
};

/// `generation` has been applied by all descendants: drop what only lingered for it.
struct SettleSubchannels {
  Generation generation = 0;
};

/// Closes the map: this policy has no leaf cluster below any more.
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

/// Says which endpoints are not to be used, to all who hold their addresses: health, never a fake
/// failure (A61). Their connections stay. The whole table, in place of any before of the same
/// judge; an endpoint is well again when no judge names it.
struct SetEndpointHealth {
  HealthJudge judge = HealthJudge::kOutlierDetection;
  std::shared_ptr<const UnhealthyEndpoints> unhealthy;  ///< Null: none.
};

/// Who counts the calls of which address from now on: the whole table, in place of any before.
struct TrackEndpoints {
  using Table = std::map<Address, CallTrackerPtr>;
  std::shared_ptr<const Table> trackers;  ///< Null: nobody counts.
};

/// Keeps sessions on their hosts (A75-24 … 36). From now on whoever orders this hears how each of
/// these addresses is, whoever holds it, and when nobody does any more; one that all others
/// release is held for it as long as calls were sent there within `idle_timeout`; and it holds no
/// address that another one acquires. The whole table, in place of any before.
struct KeepSessions {
  Duration idle_timeout{};
  SessionMarksPtr marks;  ///< Null: no sessions; what was held for them is released.
};

/// Tells the parent ChildAskedReresolution.
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
                              RequestReresolution,
                              Observe>;
using LbEffects = std::vector<LbEffect>;

}  // namespace signalbox
