// SPDX-License-Identifier: Apache-2.0
//
// thresholds — what --fail-if says, and whether it happened.
//
//   "recovery[kill primary]>1s" ─▶ [parse_threshold] ─▶ Threshold
//   Threshold, LoadReport ─▶ [judge_threshold] ─▶ LoadThreshold
//   LoadReport ─▶ [exit_status_of] ─▶ the status of load and of load merge
//
//   threshold = FIGURE [ "[" ACT "]" ] OP LIMIT         OP: > >= < <=    ACT: the name of a fault
//
//   figure                            without [ACT]                         with [ACT]   limit
//   lost                              failed calls                          of that act  a number
//   failback-errors, sessions-moved   the sum over the faults               of that act  a number
//   recovery                          the longest of the faults             of that act  a duration
//   first-success                     the longest, of faults that have one  of that act  a duration
//   p50, p95, p99, p99.9, max         of answered calls, from due           –            a duration
//   error-rate                        failed in percent of ended calls      –            5%
//   rate                              answered calls a second               –            a number
//
// A --fail-if states what must not happen. A figure that could not be measured, such as a recovery
// that never came or a latency without answered calls, counts as greater than every limit.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "tools/load/report.hpp"
#include "tools/load/script.hpp"

namespace signalbox::tools {

enum class Comparison : std::uint8_t { kAbove, kAtLeast, kBelow, kAtMost };

struct Threshold {
  std::string text;
  std::string figure;
  std::string act;  ///< The act in brackets; empty: the whole run.
  Comparison comparison = Comparison::kAbove;
  double limit = 0;  ///< In `unit`.
  std::string unit;  ///< "calls", "ns", "%", "/s".
};

absl::StatusOr<Threshold> parse_threshold(absl::string_view text);

/// INVALID_ARGUMENT: the threshold names no fault of `acts`. A mark, and an act that ends a fault,
/// have no figures.
absl::Status check_act(const Threshold& threshold, const std::vector<Act>& acts);

/// Measures the threshold's figure on `side`, and compares it with the limit. Precondition:
/// check_act() has passed for the acts of the report.
LoadThreshold judge_threshold(const Threshold& threshold,
                              const LoadReport& report,
                              const LoadSide& side);

/// The exit status that a report asks for: 2 an act of the script was not done, 3 a measurement is
/// not valid, 1 a threshold was missed, 0 none of these. The first that holds counts.
int exit_status_of(const LoadReport& report);

}  // namespace signalbox::tools
