// SPDX-License-Identifier: Apache-2.0
//
// What the drill sees of the control plane's absences, and by when each has to be made good.
//
//   script ─▶ left, returning, returned ─▶ [DrillLog] ─▶ drill_report
//   load ─▶ add(FinishedCall) ─▶
//
// Each absence brings a change: other resources, which the control plane has when it is back. They
// put another cluster first, so that the first call which that cluster answers shows that the
// change is in effect.
//
//   left ──────▶ returning ──▶ returned ───────────▶ first answer of the cluster it brings
//    away: the last good                 reconvergence ≤ back-off + 5 s
//    resources serve; an answer of that
//    cluster is too early to be true
//
// A value; its owner guards it.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/call_log.hpp"

namespace signalbox::tools {

/// How long a change may take once the client has reached its control plane again.
inline constexpr std::chrono::seconds kReconvergenceTime{5};

/// The longest wait before its next attempt that a client may have begun when its control plane
/// has been away for so long (A57).
std::chrono::nanoseconds longest_backoff(std::chrono::nanoseconds away);

struct Absence {
  std::string name;
  std::string brings;         ///< The cluster that the change puts first.
  bool breaks_stream = true;  ///< Else the client need not open another, and no back-off counts.
  CallTime left;
  std::optional<CallTime> returning;  ///< The first instant at which it may answer.
  std::optional<CallTime> returned;   ///< By then it surely does.
  std::optional<CallTime> in_effect;
  std::uint64_t calls = 0;      ///< Answered while it was away.
  std::uint64_t too_early = 0;  ///< Of these, by the cluster that the change brings.

  std::chrono::nanoseconds away() const;
  /// From its return to the first call that shows the change.
  std::optional<std::chrono::nanoseconds> reconvergence() const;
  std::chrono::nanoseconds bound() const;
};

class DrillLog {
 public:
  /// A new absence begins.
  void left(CallTime now, std::string name, std::string brings, bool breaks_stream);
  void returning(CallTime now);
  void returned(CallTime now);

  void add(const FinishedCall& call);

  /// The change of the newest absence is in effect.
  bool is_in_effect() const;

  const std::vector<Absence>& absences() const { return absences_; }

 private:
  std::vector<Absence> absences_;
};

}  // namespace signalbox::tools
