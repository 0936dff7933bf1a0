// SPDX-License-Identifier: Apache-2.0
//
// A child process: the demo's backends and control plane, the sides and commands of
// `signalbox load`, and the processes that tests start.
//
//   argv, stdin ─▶ [ChildProcess] ─▶ pid, lines of its stdout, exit status
//
// posix_spawn starts the process, because it is safe beside gRPC's threads. The process has a
// process group of its own, so that Ctrl-C reaches the parent alone. read_line() and wait() have a
// time limit. The destructor kills and reaps a process that still runs.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <sys/types.h>

namespace signalbox::tools {

/// The path of the running program, or "signalbox" if /proc does not tell.
std::string own_program();

/// The calling process gets SIGKILL when the thread that started it ends. Exits at once if the
/// calling process's parent is no longer `parent`.
void die_with_parent(pid_t parent);

class ChildProcess {
 public:
  struct Options {
    bool capture_stderr = false;  ///< False: stderr is inherited.
    /// True: the process's stdin gets the text of write(). False: its stdin is /dev/null.
    bool pipe_stdin = false;
    /// Variables that begin so, as "NAME=value", are not in the environment of the process.
    std::vector<std::string> without = {};
  };

  /// argv[0] is the program's path.
  static absl::StatusOr<ChildProcess> start(const std::vector<std::string>& argv,
                                            const Options& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }

  /// Sends the signal to the process. Does nothing if the process has ended.
  void send_signal(int signal) const;

  /// Writes all of `text` to the process's stdin. Blocks while the process does not read.
  absl::Status write(absl::string_view text) const;
  /// Ends the process's stdin.
  void close_input();

  /// The next line of the process's stdout, without the newline. UNAVAILABLE if the process ends
  /// first, DEADLINE_EXCEEDED if no line comes within `at_most`.
  absl::StatusOr<std::string> read_line(std::chrono::milliseconds at_most);

  /// The exit status; 128 + n if signal n ended the process. DEADLINE_EXCEEDED: it runs longer.
  absl::StatusOr<int> wait(std::chrono::milliseconds at_most);

  /// Output that the parent has read, and that no read_line() has returned yet.
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
  bool pump(Deadline deadline);  // Waits for output or the end. False: the deadline, or an error.
  void reap();
  void take(ChildProcess& other);
  void end();

  pid_t pid_ = -1;
  // The parent's end of stdin: a socket, because a broken pipe would raise SIGPIPE.
  int input_ = -1;
  int handle_ = -1;  // A pidfd: readable when the process has ended.
  int status_ = -1;  // Set once the process is reaped.
  bool running_ = false;
  Stream output_, errors_;
};

}  // namespace signalbox::tools
