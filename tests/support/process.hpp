// SPDX-License-Identifier: Apache-2.0
//
// Processes in tests: a program run to its end, and the world asked until it is as expected.
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

/// More than any machine needs; reached only by what is broken.
inline constexpr std::chrono::seconds kPatience{60};

struct Finished {
  int status = -1;  ///< 128 + n where signal n ended it; -1 where it had to be killed.
  std::string output;
  std::string errors;
};

/// Starts it, both streams captured. Fails the test where it cannot be started.
tools::ChildProcess start_program(const std::vector<std::string>& argv);

/// What is left of a started program's life.
Finished finish(tools::ChildProcess& process, std::chrono::milliseconds at_most = kPatience);

Finished run_program(const std::vector<std::string>& argv);

/// Is there such a process, other than a dead one that nobody has asked for yet?
bool is_alive(pid_t pid);

/// The living children of a process.
std::vector<pid_t> children_of(pid_t pid);

/// Asks again and again; false where it did not hold in time.
bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds at_most = kPatience);

}  // namespace signalbox::test
