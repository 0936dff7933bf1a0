// SPDX-License-Identifier: Apache-2.0
//
// subchannel_core — the states of one subchannel: one address, and its connections. Usually there
// is at most one; with a limit above 1 there are more when calls need more streams (A105).
//
//   subchannel map ─▶ ConnectRequested ─▶ [subchannel_core] ─▶ OpenConnection ──▶ transport
//                  ◀─ NotifyState ◀──────                   ◀─ Connected ◀───────
//   calls ─────────▶ StreamsWanted ─────▶                   ◀─ ConnectFailed ◀───
//         ◀─ OfferStreams ◀──────────────                   ◀─ ConnectionClosed ◀
//
//              ConnectRequested, StreamsWanted (B6)
//   ┌▶ Idle ────────────────────▶ Connecting ─── Connected ──▶ Idle, with one more connection
//   │ TimerFired                      │ ConnectFailed
//   └──────────────────── Backoff ◀───┴─── ConnectionClosed (B10)
//
// Reported: READY with a connection. Without one Idle→IDLE, Connecting→CONNECTING,
// Backoff→TRANSIENT_FAILURE.
//
// Invariants
//   B1  Each change of state, and each other oldest connection, is reported by exactly one
//       NotifyState.
//   B2  The n-th failed attempt in a row is followed by a back-off of min(initial·multiplierⁿ⁻¹,
//       max), changed at random by up to the fraction `jitter`, except as B5 says. The back-off is
//       counted from the *beginning* of the attempt, as in gRPC. After a successful connection n is
//       1 again, except as B10 says.
//   B3  The connection that a Connected brings is dropped once, by DropConnection: at once if the
//       attempt is not awaited any more, else when the connection closes.
//   B4  A ConnectRequested during Backoff is ignored. A holder that still wants a connection
//       requests it again when it gets the report of IDLE.
//   B5  An address that has been READY usually comes back, because its process is started again.
//       While few addresses fail (ConnectRequested::may_hurry), its first back-off is
//       `lost_backoff`, and each further back-off is `lost_multiplier` times longer. So after a
//       downtime of 9 s, the next attempt begins about 3 s later at most. Once many addresses fail,
//       its next back-off is at least `backoff.initial`, before jitter.
//   B6  With a connection, another attempt begins exactly when calls wait for a stream, there are
//       fewer connections than max_connections, and no attempt and no back-off runs (A105-11 to
//       A105-13). An established connection is never closed to have fewer.
//   B7  Streams are offered (OfferStreams) of all connections or of none. They are offered while
//       there are several connections, or while the limit is above 1 and the only connection's own
//       limit of streams is known. Otherwise calls use the connection and count nothing.
//   B8  A subchannel with a limit above 1 does not share the connections that it makes.
//   B9  While calls wait for a stream, and a connection is offered as shared
//       (OfferStreams::is_shared), the core asks again every kSharedPause (AskForDemand). Calls
//       that use such a connection without a stream do not say when they end.
//   B10 A connection ends early if it lives for less than `backoff.initial`, or than the back-off
//       that its attempt would have had, if that is longer. If an attempt that begins after an
//       early end brings a connection that ends early, too, this end counts as a failed attempt. A
//       failed attempt, or a later connection that does not end early, begins anew. So a server
//       that accepts connections and ends them is not asked again and again without a pause.
//
// Source: gRPC connection-backoff.md, connectivity semantics; A61 (subchannel states); A105.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "absl/container/inlined_vector.h"

#include "messages/back_off.hpp"
#include "messages/subchannel_events.hpp"

namespace signalbox::lb {

struct SubchannelOptions {
  Address address;
  SubchannelSettingsPtr settings = nullptr;  ///< Must be set before a core is made.
  BackoffOptions backoff;
  /// The first back-off of an address that was READY before (B5). With backoff.initial or more,
  /// such an address is treated like any other.
  Duration lost_backoff = std::chrono::milliseconds(200);
  double lost_multiplier = 1.3;
  std::uint64_t seed = 0;  ///< The source of all random numbers of the core.
  /// No setting allows more connections to the address than this (A105-3).
  std::uint32_t most_connections = 10;
};

class SubchannelCore {
 public:
  /// See B9.
  static constexpr Duration kSharedPause = std::chrono::milliseconds(50);

  explicit SubchannelCore(SubchannelOptions options);

  SubchannelEffects step(const SubchannelEvent& event, Instant now);

  /// The state in the newest NotifyState; IDLE before the first.
  ConnectivityState state() const;

  const SubchannelOptions& options() const { return options_; }

  /// The number of established connections.
  std::size_t connections() const { return open_.size(); }

 private:
  struct Idle {};

  struct Connecting {
    Duration backoff;  ///< How long the back-off is if this attempt fails.
    Instant retry_at;  ///< When it ends (B2).
    bool is_alone = false;
  };

  /// Time with fractions of a nanosecond, so that rounding errors do not add up over many
  /// back-offs.
  using Ticks = std::chrono::duration<double, Duration::period>;

  /// An established connection.
  struct Open {
    std::uint64_t attempt = 0;
    ConnectionPtr connection;
    /// All calls on it have taken streams: no other subchannel uses it, and its streams have been
    /// offered since it was made.
    bool is_counted = false;
    // For B10.
    Instant early_until{};  ///< Its end is early before this.
    Instant retry_at{};     ///< When the back-off of its attempt ends.
    Ticks backoff{};        ///< That back-off, without jitter.
  };

  struct Backoff {
    TimerId timer;
    absl::Status cause;
  };

  void on(const ConnectRequested& event, Instant now, SubchannelEffects& effects);
  void on(const Connected& event, Instant now, SubchannelEffects& effects);
  void on(const ConnectFailed& event, Instant now, SubchannelEffects& effects);
  void on(const ConnectionClosed& event, Instant now, SubchannelEffects& effects);
  void on(const StreamsWanted& event, Instant now, SubchannelEffects& effects);
  void on(const MaxConnectionsChanged& event, Instant now, SubchannelEffects& effects);
  void on(const TimerFired& event, Instant now, SubchannelEffects& effects);

  void connect(bool may_hurry, Instant now, SubchannelEffects& effects);
  bool note_end(const Open& closed, Instant now);
  void back_off(Instant until, absl::Status cause, Instant now, SubchannelEffects& effects);
  bool may_grow() const;
  bool needs_lanes() const;
  void offer(const Open& open, SubchannelEffects& effects) const;
  void follow(SubchannelEffects& effects);
  void ask_again(SubchannelEffects& effects);
  /// The length of the back-off after the attempt that begins now, if it fails.
  Duration next_backoff(bool may_hurry);
  void notify(SubchannelEffects& effects);

  SubchannelOptions options_;
  std::uint32_t max_connections_ = 1;
  /// The number of the newest attempt. Connecting belongs to it.
  std::uint64_t attempt_ = 0;
  bool has_been_ready_ = false;
  /// The newest attempt when a connection ended early for the last time. Early ends of later
  /// attempts count as failures (B10).
  std::optional<std::uint64_t> early_end_;
  Ticks backoff_{};  ///< The newest back-off, without jitter; 0 after a successful connection.
  std::variant<Idle, Connecting, Backoff> attempting_;
  absl::InlinedVector<Open, 1> open_;  ///< The connections, the oldest first.
  bool has_lanes_ = false;             ///< Streams are offered (B7).
  bool asks_again_ = false;            ///< The timer of B9 runs.
  // The newest NotifyState.
  ConnectivityState reported_ = ConnectivityState::kIdle;
  const Connection* reported_connection_ = nullptr;
  bool reported_lanes_ = false;
};

}  // namespace signalbox::lb
