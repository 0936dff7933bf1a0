// SPDX-License-Identifier: Apache-2.0
//
// SIGINT, SIGTERM and SIGHUP as events that a command waits for.
//
//   main: block_stop_signals() ─▶ every thread inherits the mask ─▶ the command: wait_for_stop(…)
//
// All threads block the signals, so no signal handler runs, and no code has to be
// async-signal-safe.

#pragma once

#include <chrono>
#include <optional>

namespace signalbox::tools {

/// Call this before any thread is started.
void block_stop_signals();

/// The stop signal that came; nothing if none came within `at_most`.
std::optional<int> wait_for_stop(std::chrono::nanoseconds at_most);

/// A descriptor that is readable when a stop signal has come; wait_for_stop() takes the signal. -1
/// on failure.
int open_stop_descriptor();

}  // namespace signalbox::tools
