// SPDX-License-Identifier: Apache-2.0
//
// PickFirst — the decisions of pick_first, as a value: one for the pick_first policy itself, one
// per endpoint inside round_robin and its like (gRFC A61: the universal leaf).
//
//   update, exit_idle, observe, fire ─▶ [PickFirst] ─▶ Acquire-, ReleaseSubchannel, Connect,
//                                            │          StartTimer, RequestReresolution
//                                            └▶ state(), status(), connection()
//
//           update              READY                    lost
//   Fresh ─────────▶ Connecting ─────────▶ Selected ─┬──────────▶ Idle (kGoIdle)
//                      ▲  ▲ address is gone  │       └▶ Connecting (kReconnect)
//                      │  └──────────────────┘
//             Idle ────┘ exit_idle
//
// Connecting passes over the addresses once, in order: each has its turn when the attempt before
// has failed, or has had `attempt_delay`; none is given up for another (Happy Eyeballs). The first
// that is READY is selected, and the others released. When each has failed TRANSIENT_FAILURE is
// reported, and from then on all of them are tried, each as soon as its back-off is over.
//
// Invariants
//   I1  Once every address failed, TRANSIENT_FAILURE is reported until READY.            (A62)
//   I2  Fresh and Idle hold no subchannel, Selected exactly one, Connecting every address.
//   I3  A selected connection is kept while it lives and its address is in the list; health
//       changes what is reported, never what is connected.                               (A61)
//   I4  A new list neither ends an attempt at an address that is still in it, nor gives that
//       attempt its delay anew: lists that come quickly hold no address up.
//
// Source: gRFC A61, A62; RFC 8305, section 5.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// How long an attempt has before the next one joins it. What is beyond the bounds is cut to them.
inline constexpr Duration kAttemptDelay = std::chrono::milliseconds(250);
inline constexpr Duration kShortestAttemptDelay = std::chrono::milliseconds(100);
inline constexpr Duration kLongestAttemptDelay = std::chrono::seconds(2);

class PickFirst {
 public:
  /// What to do when the selected connection is lost.
  enum class WhenLost : std::uint8_t { kGoIdle, kReconnect };
  /// Whether bad health is reported (below a policy of many endpoints), or nobody's business (as a
  /// cluster's own policy: there is no other endpoint to go to).
  enum class Health : std::uint8_t { kReported, kIgnored };

  explicit PickFirst(WhenLost when_lost,
                     Duration attempt_delay = kAttemptDelay,
                     Health health = Health::kReported);

  /// The addresses, in order of preference; families are interleaved, duplicates dropped. The first
  /// list is connected to at once; a later one leaves Idle idle.
  void update(std::vector<Address> addresses, LbEffects& effects);

  /// Begins to connect, if Idle.
  void exit_idle(LbEffects& effects);

  /// What a subchannel says. Of an address that is not held: dropped.
  void observe(const SubchannelStateChanged& event, LbEffects& effects);

  /// A timer that it started has fired. One that it does not wait for any more: dropped. Whoever
  /// has many PickFirsts tells those that hold address_of(timer).
  void fire(const TimerId& timer, LbEffects& effects);

  /// The address that the timer gives time to; empty: it is no timer of a PickFirst.
  static Address address_of(const TimerId& timer);

  /// Lets go of everything: the end.
  void release_all(LbEffects& effects);

  ConnectivityState state() const;

  /// Why, in TRANSIENT_FAILURE; else OK.
  absl::Status status() const;

  /// Set exactly in READY.
  ConnectionPtr connection() const;

  /// Every address that it acquired has been heard of.
  bool heard_all() const;

 private:
  struct Fresh {};

  struct Idle {};

  struct Attempt {
    std::optional<ConnectivityState> state;  ///< nullopt: acquired, not heard of yet.
    bool begun = false;                      ///< By us, in this pass or one before.
    bool failed = false;                     ///< Since its turn.
  };

  struct Connecting {
    std::vector<Attempt> attempts;     ///< By position in addresses_.
    std::size_t unheard = 0;           ///< How many of them are not heard of yet.
    std::size_t turns = 0;             ///< So many, from the first, have had their turn.
    std::size_t awaited = 0;           ///< So many have not failed; 0: the pass is over.
    std::optional<std::size_t> timed;  ///< Whose delay is running.
    std::size_t failures = 0;          ///< Since all had failed.
    absl::Status last_error;
    absl::Status reported;  ///< Not OK: TRANSIENT_FAILURE, with this (I1).
  };

  struct Selected {
    Address address;
    ConnectionPtr connection;
    absl::Status health;  ///< OK while healthy, or nobody's business.
  };

  /// What is known of one address before a new pass.
  struct Known {
    Address address;
    std::optional<ConnectivityState> state;
    bool begun = false;
    bool timed = false;
  };

  void heard(Connecting& connecting, const SubchannelStateChanged& event, LbEffects& effects);
  void heard(Selected& selected, const SubchannelStateChanged& event, LbEffects& effects);
  void connect(const std::vector<Known>& held, Connecting next, LbEffects& effects);
  void take_turns(Connecting& connecting, LbEffects& effects);
  void give_time(Connecting& connecting, std::size_t at, LbEffects& effects);
  void end_pass(Connecting& connecting, LbEffects& effects);
  void report_failure(Connecting& connecting, LbEffects& effects);
  void select(const SubchannelStateChanged& event, LbEffects& effects);
  absl::Status health_of(const SubchannelStateChanged& event) const;
  void set_addresses(std::vector<Address> addresses);
  std::optional<std::size_t> position_of(const Address& address) const;
  std::vector<Known> held() const;

  WhenLost when_lost_;
  Health health_;
  Duration attempt_delay_;
  std::uint64_t timers_ = 0;  ///< Generation of the timer started last.
  std::vector<Address> addresses_;
  absl::flat_hash_map<Address, std::size_t> positions_;  ///< In addresses_, if that has several.
  std::variant<Fresh, Idle, Connecting, Selected> state_;
};

}  // namespace signalbox::lb
