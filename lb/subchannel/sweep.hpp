// SPDX-License-Identifier: Apache-2.0
//
// sweep — decides when a subchannel map releases connections that no session has used for an idle
// timeout (gRFC A75).
//
//   map ─▶ IdleTimeoutSet ─▶ [SweepCore] ─▶ Sweep ─▶ map releases ─▶ SweepDone{next_due} ─▶ …
//
//   nothing to do ── IdleTimeoutSet ──▶ waiting for `due` ── timer ──▶ the map sweeps ─┐
//                                            ▲──────────────────── SweepDone ──────────┘
//
// Invariants
//   W1  The first sweep comes an idle timeout (but at least kShortestPause) after the first
//       IdleTimeoutSet. Each later sweep comes at SweepDone::next_due, when the next endpoint may
//       be idle (A75-30). Sweeps are at least kShortestPause apart (A75-31), even if the idle
//       timeout is 0.
//   W2  A new idle timeout may make the next sweep earlier, never later.
//   W3  Sweeps are at most kLongestPause apart, so that sums of times do not overflow. An early
//       sweep releases only connections that are idle by then.
//   W4  A timer that was replaced is ignored, and so is a SweepDone that follows no Sweep.

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

  /// The map was asked to sweep, and has not yet answered with SweepDone.
  bool is_sweeping_ = false;
  Instant last_{};              ///< When the map was last asked to sweep.
  std::optional<Instant> due_;  ///< The time of the next sweep; nullopt: none is planned.
  std::uint64_t timers_ = 0;
};

}  // namespace signalbox::lb
