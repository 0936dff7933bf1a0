// SPDX-License-Identifier: Apache-2.0
//
// What a subchannel and a subchannel map can hear and want done.
//
//   policies ─▶ subchannel map (who holds what) ─▶ subchannel (one address) ─▶ transport
//            ◀─ SubchannelStateChanged ◀────────── ◀─ Connected, ConnectFailed, ConnectionClosed
//
// A holder is a policy, known by its path; a holder's incarnation rises when its actor restarts.

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
  /// Few addresses of the cluster fail: if this attempt does, the next one may come soon.
  bool may_hurry = false;
};

/// Each attempt has a number of its own: answers to one that was given up are recognised.
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

using SubchannelEvent =
    std::variant<ConnectRequested, Connected, ConnectFailed, ConnectionClosed, TimerFired>;

/// Begins an attempt. The transport answers Connected or ConnectFailed within `timeout` of its
/// turn: of very many attempts some wait for others (actors/io/attempt_turns.hpp).
struct OpenConnection {
  std::uint64_t attempt = 0;
  Duration timeout{};
};

/// Lets go of the attempt's connection; calls on it run to their end.
struct DropConnection {
  std::uint64_t attempt = 0;
};

/// Tells the map how the subchannel is. `SubchannelStateChanged::address` is the subchannel's own.
struct NotifyState {
  SubchannelStateChanged state;
};

using SubchannelEffect =
    std::variant<OpenConnection, DropConnection, NotifyState, StartTimer, CancelTimer, Observe>;
using SubchannelEffects = std::vector<SubchannelEffect>;

// --- the health checks of one address --------------------------------------

enum class ProbeOutcome : std::uint8_t {
  kPassed,
  kFailed,   ///< No answer, or none that says whether the endpoint is fit.
  kRefused,  ///< The answer says that it is not.
  kUndone    ///< It could not be made here (no open files are left, say): it says nothing.
};

/// Each probe of a check has a number of its own: late answers are recognised.
struct ProbeEnded {
  std::size_t check = 0;  ///< Which of the cluster's health_checks.
  std::uint64_t number = 0;
  ProbeOutcome outcome = ProbeOutcome::kFailed;
  std::string why;       ///< Of one that did not pass.
  bool delayed = false;  ///< See HealthProbed.
};

struct HealthChecksBegun {};

using HealthCheckEvent = std::variant<HealthChecksBegun, ProbeEnded, TimerFired>;

/// Begins a probe; it answers ProbeEnded within the check's timeout of its turn.
struct StartProbe {
  std::size_t check = 0;
  std::uint64_t number = 0;
};

/// Tells the map whether the endpoint is fit. Not OK: why it is not.
struct ReportHealth {
  absl::Status status;
};

using HealthCheckEffect = std::variant<StartProbe, ReportHealth, StartTimer, Observe>;
using HealthCheckEffects = std::vector<HealthCheckEffect>;

// --- the map: who holds what ----------------------------------------------

struct Holder {
  PolicyPath path;
  std::uint64_t incarnation = 0;

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

/// The holder processed a configuration: what an earlier incarnation of it held and it did not
/// retake is released.
struct HolderSettled {
  Holder holder;
};

/// The holder is gone. If it died, its holds wait for the successor.
struct HolderGone {
  Holder holder;
  bool died = false;
};

struct MapGenerationStarted {
  SubchannelSettings settings;
  Generation generation = 0;
};

struct MapGenerationApplied {
  Generation generation = 0;
};

/// Which endpoints `judge` finds unfit from now on, in place of any before: health, never a fake
/// failure (A61).
struct EndpointHealthChanged {
  HealthJudge judge = HealthJudge::kOutlierDetection;
  std::shared_ptr<const UnhealthyEndpoints> unhealthy;  ///< Null: none.
};

/// Who counts the calls of which address from now on, in place of any before.
struct EndpointsTracked {
  std::shared_ptr<const TrackEndpoints::Table> trackers;  ///< Null: nobody.
};

/// See KeepSessions. A map has one keeper: the newest incarnation that said so.
struct SessionsKept {
  Holder keeper;
  Duration idle_timeout{};
  SessionMarksPtr marks;  ///< Null: no sessions.
};

/// The sweeper: release what no session used within idle_timeout (A75-29).
struct SweepAsked {};

/// What the health checks of an address make of it, by ReportHealth.
struct HealthChecked {
  Address address;
  absl::Status status;
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
                                        SubchannelStateChanged>;

struct SpawnSubchannel {
  Address address;
  SubchannelSettings settings;
};

struct StopSubchannel {
  Address address;
};

struct ConnectSubchannel {
  Address address;
  bool may_hurry = false;  ///< See ConnectRequested.
};

struct NotifyHolder {
  Holder holder;
  SubchannelStateChanged state;
};

/// From now on the address is probed, instead of any way before.
struct StartHealthChecks {
  Address address;
  HealthChecksPtr checks;  ///< Neither null nor empty.
  Address probed;          ///< Where the probes go.
  ClusterName cluster;
  UpstreamTlsPtr tls;
  std::string authority = {};  ///< As SubchannelSettings::authority.
};

struct StopHealthChecks {
  Address address;
};

/// Tells the keeper of sessions that the address has no subchannel any more.
struct NotifyGone {
  Holder holder;
  Address address;
};

/// Tells the sweeper how long sessions may idle; nullopt: there is nothing to sweep.
struct ArmSweeper {
  std::optional<Duration> idle_timeout;
};

/// Tells the sweeper that the sweep is done, and when the next endpoint may be idle (A75-30).
struct FinishSweep {
  Instant next_due{};
};

using SubchannelMapEffect = std::variant<SpawnSubchannel,
                                         StopSubchannel,
                                         ConnectSubchannel,
                                         NotifyHolder,
                                         NotifyGone,
                                         ArmSweeper,
                                         FinishSweep,
                                         StartHealthChecks,
                                         StopHealthChecks,
                                         Observe>;
using SubchannelMapEffects = std::vector<SubchannelMapEffect>;

// --- the sweeper: when the map looks for idle sessions ----------------------

/// The map: so long may sessions idle from now on. An update may bring the next sweep forward,
/// never push it back.
struct IdleTimeoutSet {
  Duration idle_timeout{};
};

/// The map has swept.
struct SweepDone {
  Instant next_due{};
};

using SweepEvent = std::variant<IdleTimeoutSet, SweepDone, TimerFired>;

/// Asks the map to sweep.
struct Sweep {};

using SweepEffect = std::variant<Sweep, StartTimer>;
using SweepEffects = std::vector<SweepEffect>;

}  // namespace signalbox
