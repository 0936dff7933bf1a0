// SPDX-License-Identifier: Apache-2.0
//
// TerminalProgram — a program that runs in a terminal of its own (a pseudoterminal).
//
//   test ─▶ type(), resize(), hang_up() ─▶ [terminal] ─▶ the program
//   test ◀─ shown() ◀───────────────────── [terminal] ◀─ its stdout and stderr

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/support/process.hpp"

namespace signalbox::test {

struct TerminalSize {
  unsigned short columns = 80;
  unsigned short rows = 24;
};

class TerminalProgram {
 public:
  /// argv[0] is the program's path. Fails the test when the program does not start.
  explicit TerminalProgram(const std::vector<std::string>& argv, TerminalSize size = {});
  ~TerminalProgram();
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;

  pid_t pid() const { return pid_; }

  void type(const std::string& text) const;
  /// Changes the terminal's size. The program gets SIGWINCH.
  void resize(TerminalSize size) const;
  /// Closes the terminal, as its window does. The program gets SIGHUP.
  void hang_up();

  /// Reads what the program writes until the condition holds for all bytes read so far; false: it
  /// did not hold within kPatience.
  bool eventually_shows(const std::function<bool(const std::string& shown)>& holds);

  /// All bytes that were read so far.
  const std::string& shown() const { return shown_; }

  /// Reads until the program ends. Returns its exit status, or 128 + n if signal n ended it;
  /// nullopt: it still runs after kPatience.
  std::optional<int> finish();

 private:
  void read_some();
  bool has_ended();

  int terminal_ = -1;
  pid_t pid_ = -1;
  std::optional<int> status_;
  std::string shown_;
};

}  // namespace signalbox::test
