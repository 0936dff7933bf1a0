// SPDX-License-Identifier: Apache-2.0
//
// SIGINT, SIGTERM and SIGHUP as events that a command waits for.
//
//   the command: block_stop_signals() ─▶ every thread inherits the mask ─▶ wait_for_stop(…)
//
// All threads block the signals then, so no signal handler runs, and no code has to be
// async-signal-safe. A command that does not block them, such as `signalbox dump`, ends at once.
//
// A command that reads a file again on SIGHUP uses open_stop_descriptor(), take_signal() and
// Terminals: SIGHUP also comes when the terminal closes, and then the command has to end.

#pragma once

#include <chrono>
#include <optional>
#include <vector>

namespace signalbox::tools {

/// Call this before any thread is started.
void block_stop_signals();

/// The stop signal that came; nothing if none came within `at_most`.
std::optional<int> wait_for_stop(std::chrono::nanoseconds at_most);

/// A descriptor that is readable when a stop signal has come; take_signal() or wait_for_stop()
/// takes the signal. -1 on failure.
int open_stop_descriptor();

/// Takes one signal from a signal descriptor, such as that of open_stop_descriptor(); nothing if
/// none has come.
std::optional<int> take_signal(int descriptor);

/// The terminals that stdin, stdout and stderr are connected to when the object is made.
class Terminals {
 public:
  Terminals();

  /// Whether one of these terminals has closed. False if the process had no terminals.
  bool has_closed() const;

 private:
  std::vector<int> descriptors_;
};

}  // namespace signalbox::tools
