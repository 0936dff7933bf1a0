// SPDX-License-Identifier: Apache-2.0
//
// sweep — when a subchannel map looks for connections that no session uses any more (gRFC A75).
//
//   map ─▶ IdleTimeoutSet ─▶ [SweepCore] ─▶ Sweep ─▶ map releases ─▶ SweepDone{next_due} ─▶ …
//
//   nothing to do ── IdleTimeoutSet ──▶ waiting for `due` ── timer ──▶ the map sweeps ─┐
//                                            ▲──────────────────── SweepDone ──────────┘
//
// Invariants
//   W1  The first sweep comes an idle timeout after the first IdleTimeoutSet. Each later sweep
//       comes when the map said that an endpoint may be idle (A75-30). Each wait is at least
//       kShortestPause, so that sweeps are at least so far apart (A75-31), whatever the idle
//       timeout: it may be 0.
//   W2  Another idle timeout may bring the next sweep forward, never push it back (D14).
//   W3  No wait is longer than kLongestPause: a sweep too many is harmless, and a clock can
//       represent any sum of times.
//   W4  A timer that was replaced, and an answer that was not asked for, mean nothing.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "messages/subchannel_events.hpp"

namespace signalbox::lb {

class SweepCore {
 public:
  static constexpr Duration kShortestPause = std::chrono::seconds(5);
  static constexpr Duration kLongestPause = std::chrono::hours(24);

  SweepEffects step(const SweepEvent& event, Instant now);

 private:
  void on(const IdleTimeoutSet& event, Instant now, SweepEffects& effects);
  void on(const SweepDone& event, Instant now, SweepEffects& effects);
  void on(const TimerFired& event, Instant now, SweepEffects& effects);
  void wait(Duration pause, Instant now, SweepEffects& effects);

  bool is_sweeping_ = false;    ///< The map was asked to sweep, and has not answered.
  Instant last_{};              ///< When the map was last asked.
  std::optional<Instant> due_;  ///< The time of the next sweep; nullopt: none is planned.
  std::uint64_t timers_ = 0;
};

}  // namespace signalbox::lb
