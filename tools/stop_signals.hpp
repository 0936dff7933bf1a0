// SPDX-License-Identifier: Apache-2.0
//
// SIGINT, SIGTERM and SIGHUP as something that a command waits for.
//
//   main: block_stop_signals() ─▶ every thread inherits it ─▶ the command: wait_for_stop(…)
//
// Blocked in all threads, the signals arrive nowhere else: no handler, nothing that has to be safe
// in one.

#pragma once

#include <chrono>
#include <optional>

namespace signalbox::tools {

/// To be called before any thread is started.
void block_stop_signals();

/// The signal that came, at latest within this time; nothing where none did.
std::optional<int> wait_for_stop(std::chrono::nanoseconds at_most);

/// A descriptor that is readable when one has come; wait_for_stop() takes it. -1 on failure.
int open_stop_descriptor();

}  // namespace signalbox::tools
