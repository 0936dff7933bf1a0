// SPDX-License-Identifier: Apache-2.0
//
// WarmingPetiole — the base class of leaf policies with slow start: round_robin and least_request.
// (weighted_round_robin has a timer for its weights anyway.)
//
//   ConfigUpdated ─▶ set_slow_start() ─▶ [WarmingPetiole] ─▶ warm_up(): the next picker's Warmth
//   TimerFired ─────────────────────────▶ │ └▶ StartTimer, while an endpoint may be in slow start
//                                         └▶ want_picker(), if the last picker's factors are old
//
// Invariants
//   I1  Without slow start no timer is started.
//   I2  One timer counts at a time, every slow_start_step(). New rules start a new timer, and the
//       running one is ignored.
//   I3  When the timer finds that the factors have changed, it requests a picker. That picker has
//       the timer's factors, unless the READY endpoints or the rules change before it is made.

#pragma once

#include <cstdint>
#include <optional>

#include "lb/leaf/petiole.hpp"
#include "lb/leaf/warmth.hpp"
#include "messages/lb_config.hpp"

namespace signalbox::lb {

class WarmingPetiole : public Petiole {
 protected:
  using Petiole::Petiole;

  /// Sets the rules of slow start; nullopt: no slow start. Returns whether the rules changed, so
  /// that a new picker is needed.
  bool set_slow_start(const std::optional<SlowStart>& rules);

  /// The Warmth for a picker of READY endpoints that is made now (I3).
  const Warmth& warm_up();

 private:
  bool fire(const TimerId& timer) final;
  void follow_up(LbEffects& effects) final;

  std::optional<SlowStart> rules_;
  Warmth warmth_;  // Of the last picker of READY endpoints.
  Warmth next_;    // Computed by the timer, for the next picker; empty: none was.
  std::uint64_t timer_ = 0;
  bool is_timed_ = false;
};

}  // namespace signalbox::lb
