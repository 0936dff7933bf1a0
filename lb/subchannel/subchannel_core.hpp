// SPDX-License-Identifier: Apache-2.0
//
// subchannel_core — the life of one subchannel: one address, at most one connection.
//
//   subchannel map ─▶ ConnectRequested ─▶ [subchannel_core] ─▶ OpenConnection ──▶ transport
//                  ◀─ NotifyState ◀──────                   ◀─ Connected ◀───────
//                                                           ◀─ ConnectFailed ◀───
//                                                           ◀─ ConnectionClosed ◀
//
//            ConnectRequested          Connected
//   ┌▶ Idle ────────────────▶ Connecting ──────────▶ Ready ──┐
//   │    ▲                        │ ConnectFailed            │
//   │    │ TimerFired             ▼                          │
//   │    └──────────────────── Backoff                       │
//   └────────────────────────────────────────────────────────┘
//                            ConnectionClosed
//
// Reported: Idle→IDLE, Connecting→CONNECTING, Ready→READY, Backoff→TRANSIENT_FAILURE.
//
// Invariants
//   B1  Every change of state is told by exactly one NotifyState, in order.
//   B2  The n-th back-off in a row is min(initial·multiplierⁿ⁻¹, max), give or take `jitter`,
//       counted from the *beginning* of its attempt, as in gRPC's connection back-off. A successful
//       connection starts the row anew.
//   B3  For each Connected there is one DropConnection: at once if the attempt was given up, else
//       when the connection closes.
//   B4  A request during Backoff is not remembered. A holder that still wants a connection asks
//       again when it is told IDLE.
//   B5  An address that has been READY usually comes back, because its process is started again.
//       While few addresses fail (ConnectRequested::may_hurry), the row begins at `lost` and grows
//       by `lost_multiplier`. So the address is found within a third of the time that it was away.
//       Once it may not hurry any more, the next back-off is at least `initial`.
//
// Source: gRPC connection-backoff.md, connectivity semantics; A61 (subchannel states).

#pragma once

#include <cstdint>
#include <variant>

#include "messages/subchannel_events.hpp"

namespace signalbox::lb {

struct SubchannelOptions {
  Address address;
  SubchannelSettings settings;
  Duration initial_backoff = std::chrono::seconds(1);
  double multiplier = 1.6;
  /// See B5. When this is initial_backoff or more, there is no hurry.
  Duration lost_backoff = std::chrono::milliseconds(200);
  double lost_multiplier = 1.3;
  double jitter = 0.2;
  Duration max_backoff = std::chrono::seconds(120);
  std::uint64_t seed = 0;  ///< The source of all its draws.
};

class SubchannelCore {
 public:
  explicit SubchannelCore(SubchannelOptions options) : options_(std::move(options)) {}

  SubchannelEffects step(const SubchannelEvent& event, Instant now);

  /// The state that was told last.
  ConnectivityState state() const;

 private:
  struct Idle {};

  struct Connecting {
    Instant retry_at;  ///< No further attempt before this time (B2).
  };

  /// Back-offs are not cut to whole ticks from attempt to attempt.
  using Ticks = std::chrono::duration<double, Duration::period>;

  struct Ready {
    ConnectionPtr connection;
  };

  struct Backoff {
    TimerId timer;
    absl::Status cause;
  };

  void on(const ConnectRequested& event, Instant now, SubchannelEffects& effects);
  void on(const Connected& event, Instant now, SubchannelEffects& effects);
  void on(const ConnectFailed& event, Instant now, SubchannelEffects& effects);
  void on(const ConnectionClosed& event, Instant now, SubchannelEffects& effects);
  void on(const TimerFired& event, Instant now, SubchannelEffects& effects);

  /// The length of the back-off, if the attempt that begins now fails.
  Duration next_backoff(bool may_hurry);
  void notify(SubchannelEffects& effects) const;

  SubchannelOptions options_;
  std::uint64_t attempt_ = 0;  ///< The newest attempt; Connecting and Ready are about this one.
  bool has_been_ready_ = false;
  Ticks backoff_{};  ///< The last back-off of this row, without jitter; 0: none yet.
  std::variant<Idle, Connecting, Ready, Backoff> state_;
};

}  // namespace signalbox::lb
