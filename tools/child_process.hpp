// SPDX-License-Identifier: Apache-2.0
//
// A process of our own: the demo's backends and control plane, and whatever a test starts.
//
//   argv, stdin ─▶ [ChildProcess] ─▶ pid, lines of its stdout, exit status
//
// Started with posix_spawn, which is safe beside gRPC's threads, in a process group of its own, so
// that Ctrl-C reaches the parent alone. Everything that waits has a limit. The destructor kills and
// reaps what still runs.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <sys/types.h>

namespace signalbox::tools {

/// The path of this very program.
std::string own_program();

/// The calling process gets SIGKILL when the thread that started it ends. Ends at once where the
/// parent is no longer `parent`.
void die_with_parent(pid_t parent);

class ChildProcess {
 public:
  struct Options {
    bool capture_stderr = false;  ///< Else it goes where ours goes.
    bool pipe_stdin = false;      ///< write() and close_input() reach it; else it reads nothing.
  };

  /// argv[0] is the program's path.
  static absl::StatusOr<ChildProcess> start(const std::vector<std::string>& argv, Options options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }

  /// Harmless where the process has ended.
  void send_signal(int signal) const;

  /// Writes all of it to the process's stdin. Waits for the process to read where it does not fit.
  absl::Status write(absl::string_view text) const;
  /// The process sees the end of its stdin.
  void close_input();

  /// The next line of its stdout, without the newline. An error where it ends first or the time is
  /// over.
  absl::StatusOr<std::string> read_line(std::chrono::milliseconds at_most);

  /// Its exit status; 128 + n where signal n ended it. DEADLINE_EXCEEDED where it still runs.
  absl::StatusOr<int> wait(std::chrono::milliseconds at_most);

  /// What it has written so far and nobody has read.
  const std::string& unread_output() const { return output_.text; }

  const std::string& captured_errors() const { return errors_.text; }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  struct Stream {
    int fd = -1;
    std::string text;

    void read_some();
    void close();
  };

  ChildProcess() = default;
  bool pump(Deadline deadline);  // Waits for output or the end; false where the time is over.
  void reap();
  void take(ChildProcess& other);
  void end();

  pid_t pid_ = -1;
  int input_ = -1;   // Our end of its stdin: a socket, as a broken pipe would raise SIGPIPE.
  int handle_ = -1;  // A pidfd: readable when the process has ended.
  int status_ = -1;  // Once reaped.
  bool running_ = false;
  Stream output_, errors_;
};

}  // namespace signalbox::tools
