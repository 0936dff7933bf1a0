// SPDX-License-Identifier: Apache-2.0
//
// What a subchannel and a subchannel map can hear and want done.
//
//   policies ─▶ subchannel map (who holds what) ─▶ subchannel (one address) ─▶ transport
//            ◀─ SubchannelStateChanged ◀────────── ◀─ Connected, ConnectFailed, ConnectionClosed
//
// A holder is a policy, known by its path; a holder's incarnation rises when its actor restarts.

#pragma once

#include <cstdint>
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

using SubchannelMapEvent = std::variant<SubchannelAcquired,
                                        SubchannelReleased,
                                        SubchannelConnectAsked,
                                        HolderSettled,
                                        HolderGone,
                                        MapGenerationStarted,
                                        MapGenerationApplied,
                                        EndpointHealthChanged,
                                        EndpointsTracked,
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

using SubchannelMapEffect =
    std::variant<SpawnSubchannel, StopSubchannel, ConnectSubchannel, NotifyHolder, Observe>;
using SubchannelMapEffects = std::vector<SubchannelMapEffect>;

}  // namespace signalbox
