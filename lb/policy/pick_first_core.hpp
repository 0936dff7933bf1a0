// SPDX-License-Identifier: Apache-2.0
//
// PickFirst — the decisions of pick_first, as a value: one for the pick_first policy itself, one
// per endpoint inside round_robin and its like (gRFC A61: the universal leaf).
//
//   update, exit_idle, observe ─▶ [PickFirst] ─▶ Acquire-, ReleaseSubchannel, Connect,
//                                     │          RequestReresolution
//                                     └▶ state(), status(), connection()
//
//           update              READY                    lost
//   Fresh ─────────▶ Connecting ─────────▶ Selected ─┬──────────▶ Idle (kGoIdle)
//                      ▲  ▲ address is gone  │       └▶ Connecting (kReconnect)
//                      │  └──────────────────┘
//                      └── exit_idle ── Idle
//
// Connecting tries the addresses one after another. When each has failed once it reports
// TRANSIENT_FAILURE, and from then on tries all of them, each as soon as its back-off is over.
//
// Invariants
//   I1  Once every address failed, TRANSIENT_FAILURE is reported until READY.            (A62)
//   I2  Fresh and Idle hold no subchannel, Selected exactly one, Connecting every address.
//   I3  A selected connection is kept while it lives and its address is in the list; health
//       changes what is reported, never what is connected.                               (A61)

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "messages/lb_events.hpp"

namespace signalbox::lb {

class PickFirst {
 public:
  /// What to do when the selected connection is lost.
  enum class WhenLost : std::uint8_t { kGoIdle, kReconnect };

  explicit PickFirst(WhenLost when_lost) : when_lost_(when_lost) {}

  /// The addresses, in order of preference; duplicates are dropped. The first list is connected
  /// to at once; a later one leaves Idle idle.
  void update(std::vector<Address> addresses, LbEffects& effects);

  /// Begins to connect, if Idle.
  void exit_idle(LbEffects& effects);

  /// What a subchannel says. Of an address that is not held: dropped.
  void observe(const SubchannelStateChanged& event, LbEffects& effects);

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

  struct Connecting {
    /// By position in addresses_; nullopt: acquired, not heard of yet.
    std::vector<std::optional<ConnectivityState>> states;
    std::size_t unheard = 0;   ///< How many of them are nullopt.
    std::size_t current = 0;   ///< Being tried; past the end once each has failed.
    std::size_t failures = 0;  ///< Since the last pass over all addresses was complete.
    absl::Status last_error;
    absl::Status reported;  ///< Not OK: TRANSIENT_FAILURE, with this (I1).
  };

  struct Selected {
    Address address;
    ConnectionPtr connection;
    absl::Status health;  ///< OK while healthy.
  };

  /// What is known of one address before a new pass.
  struct Known {
    Address address;
    std::optional<ConnectivityState> state;
  };

  void heard(Connecting& connecting, const SubchannelStateChanged& event, LbEffects& effects);
  void heard(Selected& selected, const SubchannelStateChanged& event, LbEffects& effects);
  void connect(const std::vector<Known>& held, Connecting next, LbEffects& effects);
  void try_next(Connecting& connecting, LbEffects& effects);
  void conclude_pass(Connecting& connecting, LbEffects& effects);
  void select(const SubchannelStateChanged& event, LbEffects& effects);
  std::vector<Known> held() const;

  WhenLost when_lost_;
  std::vector<Address> addresses_;
  absl::flat_hash_map<Address, std::size_t> positions_;  ///< In addresses_.
  std::variant<Fresh, Idle, Connecting, Selected> state_;
};

}  // namespace signalbox::lb
