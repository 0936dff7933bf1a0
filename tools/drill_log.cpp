// SPDX-License-Identifier: Apache-2.0
#include "tools/drill_log.hpp"

#include <algorithm>
#include <utility>

#include "messages/back_off.hpp"
#include "messages/invariant.hpp"

namespace signalbox::tools {

std::chrono::nanoseconds longest_backoff(std::chrono::nanoseconds away) {
  using Wait = std::chrono::duration<double, std::nano>;
  const BackoffOptions rule;
  const Wait most = rule.max;
  Wait base = rule.initial;
  // The worst case: jitter shortens every earlier wait, and lengthens the current wait.
  for (Wait begun = base * (1 - rule.jitter); begun <= away && base < most;
       begun += base * (1 - rule.jitter)) {
    base = std::min(most, base * rule.multiplier);
  }
  return std::chrono::ceil<std::chrono::nanoseconds>(base * (1 + rule.jitter));
}

std::chrono::nanoseconds Absence::away() const {
  return returned.value_or(left) - left;
}

std::optional<std::chrono::nanoseconds> Absence::reconvergence() const {
  if (!returned || !in_effect) return std::nullopt;
  // The control plane may answer its client before the script reads that it is back.
  return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(*in_effect - *returned));
}

std::chrono::nanoseconds Absence::bound() const {
  if (!breaks_stream) return kReconvergenceTime;
  return longest_backoff(away()) + kReconvergenceTime;
}

void DrillLog::left(CallTime now, std::string name, std::string brings, bool breaks_stream) {
  Absence absence;
  absence.name = std::move(name);
  absence.brings = std::move(brings);
  absence.breaks_stream = breaks_stream;
  absence.left = now;
  absences_.push_back(std::move(absence));
}

void DrillLog::returning(CallTime now) {
  SIGNALBOX_INVARIANT(!absences_.empty(), "a return follows an absence");
  absences_.back().returning = now;
}

void DrillLog::returned(CallTime now) {
  SIGNALBOX_INVARIANT(!absences_.empty(), "a return follows an absence");
  absences_.back().returned = now;
}

void DrillLog::add(const FinishedCall& call) {
  if (!call.ok || absences_.empty()) return;
  Absence& absence = absences_.back();
  if (call.ended < absence.left) return;
  const bool is_new = call.cluster == absence.brings;
  if (!absence.returning || call.ended < *absence.returning) {
    ++absence.calls;
    if (is_new) ++absence.too_early;
  } else if (is_new && !absence.in_effect) {
    absence.in_effect = call.ended;
  }
}

bool DrillLog::is_in_effect() const {
  return !absences_.empty() && absences_.back().in_effect.has_value();
}

}  // namespace signalbox::tools
