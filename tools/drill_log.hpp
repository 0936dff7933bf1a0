// SPDX-License-Identifier: Apache-2.0
//
// The control-plane drill's log: each absence, and the bound within which its change must show.
//
//   script ─▶ left, returning, returned ─▶ [DrillLog] ─▶ drill_report
//   load ─▶ add(FinishedCall) ─▶
//
// Each absence brings a change: the control plane returns with other resources, which put another
// cluster first. The first call that this cluster answers shows that the change is in effect.
//
//   left ──────▶ returning ──▶ returned ───────────▶ first answer of the cluster it brings
//    away: the last good                 reconvergence ≤ back-off + 5 s
//    resources serve; an answer of that
//    cluster now would be too early
//
// Not thread-safe: the owner guards it with a mutex.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/call_log.hpp"

namespace signalbox::tools {

/// The time within which a change must show after the client has reached its control plane again.
inline constexpr std::chrono::seconds kReconvergenceTime{5};

/// The longest back-off that a client may be in when its control plane has been away for `away`
/// (A57).
std::chrono::nanoseconds longest_backoff(std::chrono::nanoseconds away);

struct Absence {
  std::string name;
  std::string brings;  ///< The cluster that the change puts first.
  /// False: the client keeps its stream, so bound() has no back-off in it.
  bool breaks_stream = true;
  CallTime left;
  std::optional<CallTime> returning;  ///< From here on the control plane may answer.
  std::optional<CallTime> returned;   ///< From here on the control plane surely answers.
  std::optional<CallTime> in_effect;  ///< The end of the first call that shows the change.
  std::uint64_t calls = 0;            ///< Calls answered before `returning`.
  std::uint64_t too_early = 0;        ///< Those of `calls` that the cluster `brings` answered.

  std::chrono::nanoseconds away() const;
  /// The time from the control plane's return to the first call that shows the change.
  std::optional<std::chrono::nanoseconds> reconvergence() const;
  std::chrono::nanoseconds bound() const;
};

class DrillLog {
 public:
  /// Begins a new absence. Call this when the control plane has left.
  void left(CallTime now, std::string name, std::string brings, bool breaks_stream);
  void returning(CallTime now);
  void returned(CallTime now);

  void add(const FinishedCall& call);

  /// Whether a call has shown the change that the newest absence brought.
  bool is_in_effect() const;

  const std::vector<Absence>& absences() const { return absences_; }

 private:
  std::vector<Absence> absences_;
};

}  // namespace signalbox::tools
