// SPDX-License-Identifier: Apache-2.0
#include "tests/support/terminal.hpp"

#include <array>
#include <cstdlib>
#include <utility>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace signalbox::test {
namespace {

void set_size(int terminal, TerminalSize size) {
  const winsize window{.ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(::ioctl(terminal, TIOCSWINSZ, &window) == 0);
}

// Starts the program as the first process of a new POSIX session (setsid). Such a process gets the
// first terminal that it opens as its controlling terminal.
pid_t spawn_in(const std::string& terminal, const std::vector<std::string>& argv) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, terminal.c_str(), O_RDWR, 0);
  ::posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::vector<char*> arguments;
  for (const std::string& argument : argv)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, argv.front().c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  REQUIRE(error == 0);
  return pid;
}

}  // namespace

TerminalProgram::TerminalProgram(const std::vector<std::string>& argv, TerminalSize size)
    : terminal_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  REQUIRE(terminal_ >= 0);
  REQUIRE(::grantpt(terminal_) == 0);
  REQUIRE(::unlockpt(terminal_) == 0);
  std::array<char, 128> name{};
  REQUIRE(::ptsname_r(terminal_, name.data(), name.size()) == 0);
  // The kernel drops the terminal's size when no descriptor of the program's side is open. So the
  // test holds one open until the program runs.
  const int held = ::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  set_size(terminal_, size);
  pid_ = spawn_in(name.data(), argv);
  ::close(held);
}

TerminalProgram::~TerminalProgram() {
  if (!has_ended()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) ::close(terminal_);
}

void TerminalProgram::type(const std::string& text) const {
  REQUIRE(::write(terminal_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void TerminalProgram::resize(TerminalSize size) const {
  set_size(terminal_, size);
}

void TerminalProgram::hang_up() {
  ::close(std::exchange(terminal_, -1));
}

bool TerminalProgram::eventually_shows(const std::function<bool(const std::string& shown)>& holds) {
  return eventually([&] {
    read_some();
    return holds(shown_);
  });
}

std::optional<int> TerminalProgram::finish() {
  static_cast<void>(eventually([&] {
    read_some();
    return has_ended();
  }));
  read_some();
  return status_;
}

void TerminalProgram::read_some() {
  if (terminal_ < 0) return;
  std::array<char, 4096> bytes{};
  pollfd ready{terminal_, POLLIN, 0};
  while (::poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0) {
    const auto count = ::read(terminal_, bytes.data(), bytes.size());
    if (count <= 0) return;
    shown_.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

bool TerminalProgram::has_ended() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return status_.has_value();
}

}  // namespace signalbox::test
