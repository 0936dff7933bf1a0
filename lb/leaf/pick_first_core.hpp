// SPDX-License-Identifier: Apache-2.0
//
// PickFirst — the decisions of pick_first, as a value. The policy pick_first has one PickFirst. The
// leaf policies of many endpoints (petiole.hpp) have one for each endpoint (gRFC A61: "universal
// leaf").
//
//   update, exit_idle, observe, fire ─▶ [PickFirst] ─▶ Acquire-, ReleaseSubchannel, Connect,
//                                            │          StartTimer, RequestReresolution
//                                            └▶ state(), status(), connection()
//
//           update              READY                    lost
//   Fresh ─────────▶ Connecting ─────────▶ Selected ─┬──────────▶ Idle (kGoIdle)
//                      ▲  ▲ update without   │       └▶ Connecting (kReconnect, or not IDLE)
//                      │  │ its address      │
//                      │  └──────────────────┘             any state ─ release_all ─▶ Fresh
//             Idle ────┘ exit_idle
//
// Fresh has no list of addresses. Idle has lost its connection, and waits for exit_idle().
// Connecting makes one pass over the addresses, in the order of the list. An address has its turn
// when the attempt before it has failed, or has run for `attempt_delay`; the earlier attempt then
// runs on beside it (Happy Eyeballs). The first address that becomes READY is selected, and the
// others are released. When every address has failed, TRANSIENT_FAILURE is reported. From then on
// each address is tried again as soon as its back-off is over.
//
// Invariants
//   I1  Once every address failed, TRANSIENT_FAILURE is reported until READY or release_all. (A62)
//   I2  Fresh and Idle hold no subchannel, Selected exactly one, Connecting every address.
//   I3  A selected connection is kept while it lives and its address is in the list; health
//       changes what is reported, never what is connected.                               (A61)
//   I4  A new list does not end an attempt at an address that is still in it, and does not restart
//       the attempt's delay. So frequent updates do not delay the attempts.
//
// Source: gRFC A61, A62; RFC 8305, section 5.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

#include "messages/lb_events.hpp"

namespace signalbox::lb {

/// How long an attempt runs before the next address is tried too: the default, and the range to
/// which other values are limited.
inline constexpr Duration kAttemptDelay = std::chrono::milliseconds(250);
inline constexpr Duration kShortestAttemptDelay = std::chrono::milliseconds(100);
inline constexpr Duration kLongestAttemptDelay = std::chrono::seconds(2);

class PickFirst {
 public:
  /// The reaction to the loss of the selected connection.
  enum class WhenLost : std::uint8_t { kGoIdle, kReconnect };
  /// kReported: an unhealthy endpoint is reported as TRANSIENT_FAILURE, so that a policy of many
  /// endpoints leaves it out. kIgnored: health changes nothing. This is for the policy pick_first,
  /// which has one connection at most, and for UNHEALTHY endpoints that get calls in panic
  /// (ENV-17).
  enum class Health : std::uint8_t { kReported, kIgnored };

  /// `first_timer`: the timers get the generations above it. An owner of many PickFirsts keeps
  /// these ranges apart, because two PickFirsts may have timers of one address.
  explicit PickFirst(WhenLost when_lost,
                     Duration attempt_delay = kAttemptDelay,
                     Health health = Health::kReported,
                     std::uint64_t first_timer = 0);

  /// Sets the addresses, in order of preference. Interleaves IPv4 and IPv6, and drops duplicates.
  /// Begins to connect with the first list. A later list does not end the state Idle.
  void update(std::vector<Address> addresses, LbEffects& effects);

  /// Begins to connect, if Idle.
  void exit_idle(LbEffects& effects);

  /// Takes a report of a subchannel. A report of an address that is not held is ignored.
  void observe(const SubchannelStateChanged& event, LbEffects& effects);

  /// Handles a timer that this PickFirst started. Ignores a timer that it no longer waits for. An
  /// owner of many PickFirsts calls fire() on those that hold address_of(timer).
  void fire(const TimerId& timer, LbEffects& effects);

  /// The address of the attempt that started the timer; empty if the timer is not a PickFirst's.
  static Address address_of(const TimerId& timer);

  /// Releases every subchannel, and returns to Fresh.
  void release_all(LbEffects& effects);

  ConnectivityState state() const;

  /// The reason of TRANSIENT_FAILURE; else OK.
  absl::Status status() const;

  /// Null unless the state is READY.
  ConnectionPtr connection() const;

  /// Whether every acquired address has reported a state.
  bool heard_all() const;

 private:
  struct Fresh {};

  struct Idle {};

  struct Attempt {
    std::optional<ConnectivityState> state;  ///< nullopt: acquired, but not reported yet.
    /// The address has had its turn, in this pass or an earlier one, and was not in back-off then.
    bool begun = false;
    bool failed = false;  ///< The address failed after its turn, or was in back-off at its turn.
    absl::Status error;   ///< The newest failure; OK: none is known.
  };

  struct Connecting {
    std::vector<Attempt> attempts;  ///< Indexed as addresses_ is.
    std::size_t unheard = 0;        ///< The number of attempts without a report.
    std::size_t turns = 0;          ///< The number of addresses that have had their turn.
    /// How many addresses have not failed in this pass; 0: the pass is over.
    std::size_t awaited = 0;
    std::optional<std::size_t> timed;  ///< The address that the running delay belongs to.
    std::size_t failures = 0;          ///< Failures since TRANSIENT_FAILURE was last reported.
    std::optional<std::size_t> last_failed;  ///< The address that failed last, of this list.
    /// The status of the TRANSIENT_FAILURE that is reported now (I1); OK: none is.
    absl::Status reported;
  };

  /// Never null. A PickFirst that is connected, as thousands may be, has no room for a pass.
  using ConnectingPtr = std::unique_ptr<Connecting>;

  struct Selected {
    Address address;
    ConnectionPtr connection;
    absl::Status health;  ///< OK while healthy, and always with Health::kIgnored.
  };

  /// A held address and what was known of it when a new pass begins.
  struct Known {
    Address address;
    std::optional<ConnectivityState> state;
    bool begun = false;
    bool timed = false;
    absl::Status error = absl::OkStatus();
    bool failed_last = false;
  };

  void heard(Connecting& connecting, const SubchannelStateChanged& event, LbEffects& effects);
  void heard(Selected& selected, const SubchannelStateChanged& event, LbEffects& effects);
  void connect(const std::vector<Known>& held, Connecting next, LbEffects& effects);
  void take_turns(Connecting& connecting, LbEffects& effects);
  void give_time(Connecting& connecting, std::size_t at, LbEffects& effects);
  void end_pass(Connecting& connecting, LbEffects& effects);
  void report_failure(Connecting& connecting, LbEffects& effects);
  absl::Status failure_of_all(const Connecting& connecting) const;
  void select(const SubchannelStateChanged& event, LbEffects& effects);
  /// The state Connecting; null: the state is another.
  Connecting* pass();
  const Connecting* pass() const;
  absl::Status health_of(const SubchannelStateChanged& event) const;
  void set_addresses(std::vector<Address> addresses);
  std::optional<std::size_t> position_of(const Address& address) const;
  std::vector<Known> held() const;

  WhenLost when_lost_;
  Health health_;
  Duration attempt_delay_;
  std::uint64_t timers_;  ///< Generation of the timer started last.
  absl::InlinedVector<Address, 1> addresses_;
  /// Each address's index in addresses_; empty if addresses_ has fewer than two.
  absl::flat_hash_map<Address, std::size_t> positions_;
  std::variant<Fresh, Idle, ConnectingPtr, Selected> state_;
};

}  // namespace signalbox::lb
