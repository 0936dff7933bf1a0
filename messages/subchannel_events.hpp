// SPDX-License-Identifier: Apache-2.0
//
// The events and effects of a subchannel and of a subchannel map.
//
//   policies ─▶ subchannel map (of all holders) ─▶ subchannel (one address) ─▶ transport
//            ◀─ SubchannelStateChanged ◀────────── ◀─ Connected, ConnectFailed, ConnectionClosed
//
// A holder is a policy, known by its path. Each restart of the policy's actor, or of an actor above
// it, begins a new incarnation of the holder, which is greater.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "messages/lb_events.hpp"

namespace signalbox {

// --- the subchannel: one address ------------------------------------------

struct ConnectRequested {
  /// True: fewer than 64 addresses of the map are failing or connecting (I8 of
  /// subchannel_map_core.hpp). So the back-off after this attempt may be short, as
  /// RuntimeOptions::lost_backoff says.
  bool may_hurry = false;
};

/// Each attempt has a number. An event with an old number belongs to an abandoned attempt and is
/// ignored.
struct Connected {
  std::uint64_t attempt = 0;
  ConnectionPtr connection;
};

struct ConnectFailed {
  std::uint64_t attempt = 0;
  absl::Status status;
};

struct ConnectionClosed {
  std::uint64_t attempt = 0;
  absl::Status status;
};

/// Calls wait for a stream, because all connections of the subchannel are full (A105).
struct StreamsWanted {};

/// The most connections that the subchannel may have from now on (A105).
struct MaxConnectionsChanged {
  std::uint32_t max_connections = 1;
};

using SubchannelEvent = std::variant<ConnectRequested,
                                     Connected,
                                     ConnectFailed,
                                     ConnectionClosed,
                                     StreamsWanted,
                                     MaxConnectionsChanged,
                                     TimerFired>;

/// Begins an attempt to connect. If too many attempts run, the attempt waits for its turn
/// (actors/io/attempt_turns.hpp). After its turn has come, Connected or ConnectFailed follows
/// within about `timeout` (Connector::connect() of actors/io/connector.hpp).
struct OpenConnection {
  std::uint64_t attempt = 0;
  Duration timeout{};
  /// The connection is for this subchannel alone, which counts all its streams (A105). False: equal
  /// peers share connections.
  bool is_alone = false;
};

/// Releases the attempt's connection. Calls on it run to their end.
struct DropConnection {
  std::uint64_t attempt = 0;
};

/// From now on calls may take streams of the attempt's connection (lb/pick/stream_lanes.hpp).
struct OfferStreams {
  std::uint64_t attempt = 0;
  ConnectionPtr connection;
  /// Calls that take no stream may use the connection too: those of other subchannels, and those of
  /// a time when no streams were offered.
  bool is_shared = false;
};

/// No call takes a stream of the attempt's connection any more.
struct WithdrawStreams {
  std::uint64_t attempt = 0;
};

/// Asks whether calls wait for streams: if so, StreamsWanted follows.
struct AskForDemand {};

/// Reports the subchannel's state to the subchannel map.
struct NotifyState {
  SubchannelStateChanged state;
  /// Calls take streams of all connections that are offered (OfferStreams), not only of
  /// `state.connection`, the oldest.
  bool has_lanes = false;
};

using SubchannelEffect = std::variant<OpenConnection,
                                      DropConnection,
                                      OfferStreams,
                                      WithdrawStreams,
                                      AskForDemand,
                                      NotifyState,
                                      StartTimer,
                                      CancelTimer,
                                      Observe>;
using SubchannelEffects = std::vector<SubchannelEffect>;

// --- the health checks of one address --------------------------------------

enum class ProbeOutcome : std::uint8_t {
  kPassed,
  kFailed,   ///< No answer, or an answer that does not say whether the endpoint is healthy.
  kRefused,  ///< The answer says that the endpoint is unhealthy.
  /// The probe could not be made (for example, no file descriptor was free), or did not reach the
  /// server's application (GOAWAY). It says nothing about the endpoint.
  kUndone
};

/// A probe has ended. Each probe of a check has a number, so that the ProbeEnded of an earlier
/// probe is recognised.
struct ProbeEnded {
  std::size_t check = 0;  ///< Index into the cluster's health_checks.
  std::uint64_t number = 0;
  ProbeOutcome outcome = ProbeOutcome::kFailed;
  std::string why;       ///< The reason, when the probe did not pass.
  bool delayed = false;  ///< See HealthProbed.
};

struct HealthChecksBegun {};

using HealthCheckEvent = std::variant<HealthChecksBegun, ProbeEnded, TimerFired>;

/// Begins a probe. When the probe's turn has come, ProbeEnded follows within the check's timeout; a
/// gRPC probe without a connection may take longer (Q3 of actors/io/health_prober.hpp).
struct StartProbe {
  std::size_t check = 0;
  std::uint64_t number = 0;
};

/// Reports to the map whether the endpoint is healthy. A status that is not OK is the reason why
/// the endpoint is not healthy.
struct ReportHealth {
  absl::Status status;
};

using HealthCheckEffect = std::variant<StartProbe, ReportHealth, StartTimer, Observe>;
using HealthCheckEffects = std::vector<HealthCheckEffect>;

// --- the map: the holders of each address ----------------------------------

/// The numbers of the actors of a holder and of the policies above it, from the top down; those of
/// the subchannel map's owner and above are left out. The first different number decides which of
/// two incarnations is newer. The holder's own number alone would not do: below a policy that has
/// died, a child may start later than its namesake below the successor.
using Incarnation = std::vector<std::uint64_t>;

struct Holder {
  PolicyPath path;
  Incarnation incarnation;

  friend bool operator==(const Holder&, const Holder&) = default;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

struct SubchannelAcquired {
  Holder holder;
  Address address;
};

struct SubchannelReleased {
  Holder holder;
  Address address;
};

struct SubchannelConnectAsked {
  Address address;
};

/// The holder processed a configuration. The map releases those holds of the holder's earlier
/// incarnations that this incarnation has not acquired again.
struct HolderSettled {
  Holder holder;
};

/// The holder has ended. If the holder died, the map keeps the holder's addresses for the next
/// incarnation of the holder.
struct HolderGone {
  Holder holder;
  bool died = false;
};

struct MapGenerationStarted {
  SubchannelSettings settings;
  Generation generation = 0;
  EndpointsPtr endpoints = nullptr;  ///< See ServeSubchannels.
};

struct MapGenerationApplied {
  Generation generation = 0;
};

/// The endpoints that `judge` finds unfit from now on. The table replaces the judge's previous
/// table. Only health changes; the connectivity state stays (A61).
struct EndpointHealthChanged {
  HealthJudge judge = HealthJudge::kOutlierDetection;
  std::shared_ptr<const UnhealthyEndpoints> unhealthy;  ///< Null: none.
};

/// The trackers that count the calls of each address from now on. The table replaces the previous
/// table.
struct EndpointsTracked {
  std::shared_ptr<const TrackEndpoints::Table> trackers;  ///< Null: none.
};

/// The effect KeepSessions, as the map receives it. Only one policy can keep sessions in a map: the
/// last one that sent this event with `marks` that are not null.
struct SessionsKept {
  Holder keeper;
  Duration idle_timeout{};
  SessionMarksPtr marks;  ///< Null: no sessions.
};

/// From the sweeper: the map must release the addresses that it holds only for sessions and that no
/// session used within idle_timeout (A75-29).
struct SweepAsked {};

/// The result of an address's health checks, from ReportHealth.
struct HealthChecked {
  Address address;
  absl::Status status;
};

/// The actor of the address's subchannel has died, and its connections with it. Until a new actor
/// runs, the address cannot be connected. The new actor's first report is IDLE.
struct SubchannelDied {
  Address address;
  absl::Status why;
};

using SubchannelMapEvent = std::variant<SubchannelAcquired,
                                        SubchannelReleased,
                                        SubchannelConnectAsked,
                                        HolderSettled,
                                        HolderGone,
                                        MapGenerationStarted,
                                        MapGenerationApplied,
                                        EndpointHealthChanged,
                                        EndpointsTracked,
                                        SessionsKept,
                                        SweepAsked,
                                        HealthChecked,
                                        SubchannelStateChanged,
                                        SubchannelDied>;

struct SpawnSubchannel {
  Address address;
  SubchannelSettingsPtr settings;  ///< Never null. All subchannels of the map share them.
};

struct StopSubchannel {
  Address address;
};

struct ConnectSubchannel {
  Address address;
  bool may_hurry = false;  ///< See ConnectRequested.
};

/// See MaxConnectionsChanged.
struct LimitConnections {
  Address address;
  std::uint32_t max_connections = 1;
};

struct NotifyHolder {
  Holder holder;
  SubchannelStateChanged state;
};

/// From now on the address is probed by these checks; earlier checks of the address end.
struct StartHealthChecks {
  Address address;
  HealthChecksPtr checks;  ///< Neither null nor empty.
  Address probed;          ///< The address that the probes go to.
  ClusterName cluster;
  UpstreamTlsPtr tls;
  std::string authority = {};  ///< See SubchannelSettings::authority.
};

struct StopHealthChecks {
  Address address;
};

/// Tells the policy that keeps sessions (SessionsKept) that the address has no subchannel.
struct NotifyGone {
  Holder holder;
  Address address;
};

/// Tells the sweeper how long sessions may idle; nullopt: there is nothing to sweep.
struct ArmSweeper {
  std::optional<Duration> idle_timeout;
};

/// Tells the sweeper that the sweep is done, and when the next endpoint may have been idle for
/// idle_timeout.
struct FinishSweep {
  Instant next_due{};
};

using SubchannelMapEffect = std::variant<SpawnSubchannel,
                                         StopSubchannel,
                                         ConnectSubchannel,
                                         LimitConnections,
                                         NotifyHolder,
                                         NotifyGone,
                                         ArmSweeper,
                                         FinishSweep,
                                         StartHealthChecks,
                                         StopHealthChecks,
                                         Observe>;
using SubchannelMapEffects = std::vector<SubchannelMapEffect>;

// --- the sweeper: when the map looks for idle sessions ----------------------

/// From the map, which holds addresses of sessions until no session has used them for this time. An
/// update can make the next sweep earlier, never later.
struct IdleTimeoutSet {
  Duration idle_timeout{};
};

/// The map has finished a sweep (SweepAsked). From `next_due` on, another endpoint may have been
/// idle for idle_timeout.
struct SweepDone {
  Instant next_due{};
};

using SweepEvent = std::variant<IdleTimeoutSet, SweepDone, TimerFired>;

/// Sends SweepAsked to the map.
struct Sweep {};

using SweepEffect = std::variant<Sweep, StartTimer>;
using SweepEffects = std::vector<SweepEffect>;

}  // namespace signalbox
