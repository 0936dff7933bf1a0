// SPDX-License-Identifier: Apache-2.0
//
// subchannel_core — the states of one subchannel: one address, at most one connection.
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
//   B1  Each change of state is reported by exactly one NotifyState.
//   B2  The n-th failed attempt in a row is followed by a back-off of min(initial·multiplierⁿ⁻¹,
//       max), changed at random by up to the fraction `jitter`, except as B5 says. The back-off is
//       counted from the *beginning* of the attempt, as in gRPC. After a successful connection n is
//       1 again.
//   B3  The connection that a Connected brings is dropped once, by DropConnection: at once if the
//       attempt is not awaited any more, else when the connection closes.
//   B4  A ConnectRequested during Backoff is ignored. A holder that still wants a connection
//       requests it again when it gets the report of IDLE.
//   B5  An address that has been READY usually comes back, because its process is started again.
//       While few addresses fail (ConnectRequested::may_hurry), its first back-off is
//       `lost_backoff`, and each further back-off is `lost_multiplier` times longer. So after a
//       downtime of 9 s, the next attempt begins about 3 s later at most. Once many addresses fail,
//       its next back-off is at least `backoff.initial`, before jitter.
//
// Source: gRPC connection-backoff.md, connectivity semantics; A61 (subchannel states).

#pragma once

#include <cstdint>
#include <variant>

#include "messages/back_off.hpp"
#include "messages/subchannel_events.hpp"

namespace signalbox::lb {

struct SubchannelOptions {
  Address address;
  SubchannelSettings settings;
  BackoffOptions backoff;
  /// The first back-off of an address that was READY before (B5). With backoff.initial or more,
  /// such an address is treated like any other.
  Duration lost_backoff = std::chrono::milliseconds(200);
  double lost_multiplier = 1.3;
  std::uint64_t seed = 0;  ///< The source of all random numbers of the core.
};

class SubchannelCore {
 public:
  explicit SubchannelCore(SubchannelOptions options) : options_(std::move(options)) {}

  SubchannelEffects step(const SubchannelEvent& event, Instant now);

  /// The state in the newest NotifyState; IDLE before the first.
  ConnectivityState state() const;

 private:
  struct Idle {};

  struct Connecting {
    Instant retry_at;  ///< When the back-off ends if this attempt fails (B2).
  };

  /// Time with fractions of a nanosecond, so that rounding errors do not add up over many
  /// back-offs.
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

  /// The length of the back-off after the attempt that begins now, if it fails.
  Duration next_backoff(bool may_hurry);
  void notify(SubchannelEffects& effects) const;

  SubchannelOptions options_;
  /// The number of the newest attempt. Connecting and Ready belong to it.
  std::uint64_t attempt_ = 0;
  bool has_been_ready_ = false;
  Ticks backoff_{};  ///< The newest back-off, without jitter; 0 after a successful connection.
  std::variant<Idle, Connecting, Ready, Backoff> state_;
};

}  // namespace signalbox::lb
