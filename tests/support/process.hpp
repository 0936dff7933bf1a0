// SPDX-License-Identifier: Apache-2.0
//
// Processes in tests: a program run to its end, and a condition that is polled until it holds.
//
//   test ─▶ run_program({program, "check", file}) ─▶ Finished{status, output, errors}

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tools/child_process.hpp"

namespace signalbox::test {

/// The default limit of a wait: more than any machine should need, so a wait that reaches it shows
/// that something is broken.
inline constexpr std::chrono::seconds kPatience{60};

struct Finished {
  /// 128 + n when signal n ended the program; -1 when the wait ended before the program.
  int status = -1;
  std::string output;
  std::string errors;
};

/// Starts the program and captures stdout and stderr. Fails the test when the program does not
/// start.
tools::ChildProcess start_program(const std::vector<std::string>& argv);

/// Waits for a started program's end.
Finished finish(tools::ChildProcess& process, std::chrono::milliseconds at_most = kPatience);

Finished run_program(const std::vector<std::string>& argv);

/// Whether the process exists, and is not a zombie.
bool is_alive(pid_t pid);

/// Waits until none of the processes is alive; false: some were still alive after kPatience.
bool are_gone(const std::vector<pid_t>& pids);

/// The living children of a process.
std::vector<pid_t> children_of(pid_t pid);

/// Polls the condition until it holds; false: it did not hold within `at_most`.
bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds at_most = kPatience);

}  // namespace signalbox::test
