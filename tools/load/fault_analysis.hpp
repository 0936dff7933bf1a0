// SPDX-License-Identifier: Apache-2.0
//
// FaultAnalysis — what each fault did to the calls.
//
//   fault_began, ended, in the order of their times ─▶ [FaultAnalysis] ─▶ LoadFaultFigures
//   bins of the whole run ─▶ [recovery_of] ───────────────────────────────▲
//
// The rules:
// - A failed call is *lost* to the first fault that began between the call's due time and its end,
//   else to the last fault before the call was due. A call that failed before every fault is lost
//   to none of them.
// - *The next priority* of a fault: one that is worse than every priority that answered in the last
//   second before the fault. Its first answer counts, unless another fault began a second or more
//   after this one: from then on, answers count for the later fault.
// - A fault has *failed back* when a priority no worse than those before the fault answers a
//   call that was sent after the next priority's first answer. The *failback errors* are the calls
//   that failed within a second before or after the failback, but not before the next priority's
//   first answer.
// - A session has *moved* when it is answered by another endpoint than before. It is counted once
//   for the last fault that began before that answer.
// - The *baseline* is the p99 of the calls that were due in the 5 s before the fault and ended OK.
//   As calls are counted in bins, the 5 s end where the fault's bin begins.
//   A fault has *recovered* at the first bin from which on, for 5 s, 99 % of the calls ended OK
//   within 1.2 × the baseline. The limit is at least 1 ms above the baseline: a valid measurement
//   is no finer.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "tools/load/ended_call.hpp"
#include "tools/load/report.hpp"

namespace signalbox::tools {

class FaultAnalysis {
 public:
  explicit FaultAnalysis(std::size_t sessions) : sessions_(sessions) {}

  /// An act of the script begins. `is_fault`: false if the act is a mark or ends a fault.
  void fault_began(std::int64_t at_ns, bool is_fault);

  /// A measured call has ended. `rank` orders priorities: a worse one has a higher rank. nullopt:
  /// not known.
  void ended(const EndedCall& call, std::optional<std::uint32_t> rank);

  /// The figures of all acts so far, in the order of the acts. Baseline and recovery are not set.
  const std::vector<LoadFaultFigures>& figures() const { return figures_; }

 private:
  struct Fault {
    std::int64_t at_ns = 0;
    bool is_fault = true;
    std::optional<std::uint32_t> worst_before;  // nullopt: no priority answered just before.
    // When the next priority answered first; nullopt: not yet.
    std::optional<std::int64_t> next_answered;
    std::optional<std::int64_t> failed_back;
  };

  struct Session {
    std::optional<std::uint32_t> endpoint;
    // The index of the fault for which the session's move was counted last.
    std::optional<std::size_t> counted_for;
  };

  bool is_over(std::size_t fault, std::int64_t now_ns) const;
  std::optional<std::size_t> blamed(const EndedCall& call) const;
  void failed(const EndedCall& call);
  void answered(const EndedCall& call, std::uint32_t rank);
  void note_session(const EndedCall& call);

  std::vector<Fault> faults_;
  std::vector<LoadFaultFigures> figures_;
  std::vector<Session> sessions_;
  // For each rank, the end of its last answered call.
  std::map<std::uint32_t, std::int64_t> last_answer_;
  // The ends of the calls that failed in the last second.
  std::deque<std::int64_t> recent_failures_;
};

/// The p99 of the calls that were due in the 5 s before `at_ns` and ended OK; 0: none did.
std::uint64_t baseline_of(const std::vector<LoadBin>& bins, std::int64_t at_ns);

/// Why a fault has no recovery.
enum class Unrecovered : std::uint8_t {
  kNever,       ///< Calls failed or were slow until the end.
  kNoBaseline,  ///< No call ended OK in the 5 s before the fault.
  kTooShort,    ///< The run ended before 5 s could prove a recovery.
};

/// Precondition: recovery_of() returned nullopt. kTooShort: the run ended less than 5 s after the
/// fault, or 99 % of the calls in its last second were within the limit.
Unrecovered why_unrecovered(const std::vector<LoadBin>& bins,
                            std::int64_t at_ns,
                            std::int64_t ran_ns,
                            std::uint64_t baseline_p99_ns);

/// The time from the fault at `at_ns` until the calls had recovered, by the rule at the top of this
/// file. `ran_ns`: the length of the measured part. nullopt: there is no baseline, or the run has
/// no 5 s after the fault in which 99 % of the calls were within the limit.
std::optional<std::int64_t> recovery_of(const std::vector<LoadBin>& bins,
                                        std::int64_t at_ns,
                                        std::int64_t ran_ns,
                                        std::uint64_t baseline_p99_ns);

}  // namespace signalbox::tools
