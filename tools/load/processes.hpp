// SPDX-License-Identifier: Apache-2.0
//
// processes — the calls of a side, divided between several processes, and their results as one.
//
//   SidePlan ─▶ [share_of] ─▶ SidePlan of each process: every n-th call, some of the sessions
//   LoadSide of each process ─▶ [merge_processes] ─▶ LoadSide
//
// The calls of all processes are the calls of one schedule. Results are merged as `load merge`
// merges reports.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "tools/load/recorder.hpp"
#include "tools/load/report.hpp"
#include "tools/load/side_plan.hpp"

namespace signalbox::tools {

inline constexpr std::uint64_t kMostProcesses = 64;

/// Checks that the plan can be divided among `processes`. INVALID_ARGUMENT: a process would have no
/// session, or could have no call in flight.
absl::Status check_processes(const SidePlan& plan, std::uint64_t processes);

/// The plan of one process. Sessions, the limit of calls in flight, and the callers of the closed
/// loop are divided; earlier processes get the rest. Precondition: index < processes.
SidePlan share_of(SidePlan plan, std::uint64_t index, std::uint64_t processes);

/// "the process of the grpc side", or "process 2 of 3 of the grpc side".
std::string name_of_process(const std::string& side, std::uint64_t index, std::uint64_t processes);

/// What a process of a side left.
struct ProcessResult {
  std::string name;              ///< For the reasons of a measurement that is not valid.
  std::optional<LoadSide> side;  ///< nullopt: the process died.
  std::string failure;           ///< How it died; empty if it did not.
};

/// Adds the results of one side's processes. A process that died makes the measurement not valid,
/// with a reason that names the process. `run`: the report without its sides. Precondition: there
/// is a result with a side, and each has the figures of all faults.
absl::StatusOr<LoadSide> merge_processes(const LoadReport& run,
                                         const std::vector<ProcessResult>& results);

/// The figures of one second of several processes as one.
LoadSecond merge_seconds(const std::vector<LoadSecond>& seconds);

}  // namespace signalbox::tools
