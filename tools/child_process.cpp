// SPDX-License-Identifier: Apache-2.0
#include "tools/child_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace signalbox::tools {
namespace {

using Clock = std::chrono::steady_clock;

absl::Status system_error(absl::string_view what, int error) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(error)));
}

// The attributes and file actions of posix_spawn. The destructor releases them.
struct SpawnPlan {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;

  SpawnPlan() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&actions);
    // This program may block the stop signals. A child must begin with no signal blocked or
    // ignored.
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes,
        static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  }

  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }

  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
};

struct Pipe {
  std::array<int, 2> ends{-1, -1};

  bool open() { return ::pipe2(ends.data(), O_CLOEXEC) == 0; }

  // Sockets, so that write() can use send() with MSG_NOSIGNAL.
  bool open_sockets() {
    return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0;
  }

  int take_reader() { return std::exchange(ends[0], -1); }

  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
};

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
}

// Pointers into `environ`, as Options::without says.
std::vector<char*> environment_without(const std::vector<std::string>& beginnings) {
  std::vector<char*> kept;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const auto begins = [&](const std::string& text) { return absl::StartsWith(*variable, text); };
    if (absl::c_none_of(beginnings, begins)) kept.push_back(*variable);
  }
  kept.push_back(nullptr);
  return kept;
}

}  // namespace

std::string own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string("signalbox") : path.string();
}

void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before prctl() took effect.
  if (::getppid() != parent) std::_Exit(1);
}

absl::StatusOr<ChildProcess> ChildProcess::start(const std::vector<std::string>& argv,
                                                 const Options& options) {
  Pipe input;
  Pipe output;
  Pipe errors;
  if (!output.open() || (options.capture_stderr && !errors.open()) ||
      (options.pipe_stdin && !input.open_sockets())) {
    return system_error("cannot make a pipe", errno);
  }
  SpawnPlan plan;
  if (options.pipe_stdin) {
    posix_spawn_file_actions_adddup2(&plan.actions, input.ends[1], STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&plan.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&plan.actions, output.ends[1], STDOUT_FILENO);
  if (options.capture_stderr) {
    posix_spawn_file_actions_adddup2(&plan.actions, errors.ends[1], STDERR_FILENO);
  }

  std::vector<std::string> words = argv;
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);

  ChildProcess child;
  std::vector<char*> environment = environment_without(options.without);
  const int error = ::posix_spawn(&child.pid_,
                                  pointers[0],
                                  &plan.actions,
                                  &plan.attributes,
                                  pointers.data(),
                                  environment.data());
  if (error != 0) return system_error(absl::StrCat("cannot start ", argv[0]), error);
  child.running_ = true;
  // Not pidfd_open(): Debian's <sys/pidfd.h> declares it without C linkage.
  child.handle_ = static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0));
  if (child.handle_ < 0) return system_error("cannot watch a process", errno);
  if (options.pipe_stdin) child.input_ = input.take_reader();
  child.output_.fd = output.take_reader();
  if (options.capture_stderr) child.errors_.fd = errors.take_reader();
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept {
  take(other);
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    end();
    take(other);
  }
  return *this;
}

ChildProcess::~ChildProcess() {
  end();
}

void ChildProcess::send_signal(int signal) const {
  if (running_) ::kill(pid_, signal);
}

absl::Status ChildProcess::write(absl::string_view text) const {
  while (!text.empty()) {
    const ssize_t sent = ::send(input_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) {
      return system_error(absl::StrCat("cannot write to process ", pid_), errno);
    }
    if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return absl::OkStatus();
}

void ChildProcess::close_input() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

absl::StatusOr<std::string> ChildProcess::read_line(std::chrono::milliseconds at_most) {
  const Deadline deadline = Clock::now() + at_most;
  for (;;) {
    const auto newline = output_.text.find('\n');
    if (newline != std::string::npos) {
      std::string line = output_.text.substr(0, newline);
      output_.text.erase(0, newline + 1);
      return line;
    }
    if (!running_) {
      return absl::UnavailableError(absl::StrCat("process ", pid_, " ended with ", status_));
    }
    if (!pump(deadline)) {
      return absl::DeadlineExceededError(absl::StrCat("process ", pid_, " wrote no line in time"));
    }
  }
}

absl::StatusOr<int> ChildProcess::wait(std::chrono::milliseconds at_most) {
  const Deadline deadline = Clock::now() + at_most;
  while (running_) {
    if (!pump(deadline)) {
      return absl::DeadlineExceededError(absl::StrCat("process ", pid_, " still runs"));
    }
  }
  return status_;
}

void ChildProcess::Stream::read_some() {
  std::array<char, 4096> chunk;
  const ssize_t got = ::read(fd, chunk.data(), chunk.size());
  if (got > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  } else if (got == 0 || errno != EINTR) {
    close();
  }
}

void ChildProcess::Stream::close() {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

bool ChildProcess::pump(Deadline deadline) {
  // poll() ignores negative descriptors.
  std::array<pollfd, 3> fds{
      pollfd{output_.fd, POLLIN, 0}, pollfd{errors_.fd, POLLIN, 0}, pollfd{handle_, POLLIN, 0}};
  const int ready = ::poll(fds.data(), fds.size(), milliseconds_until(deadline));
  if (ready < 0) return errno == EINTR;
  if (ready == 0) return false;
  if (fds[0].revents != 0) output_.read_some();
  if (fds[1].revents != 0) errors_.read_some();
  // Output is read first: the process is reaped when poll() finds its end and no output.
  if (fds[0].revents == 0 && fds[1].revents == 0 && fds[2].revents != 0) reap();
  return true;
}

void ChildProcess::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  running_ = false;
}

void ChildProcess::take(ChildProcess& other) {
  pid_ = other.pid_;
  input_ = std::exchange(other.input_, -1);
  handle_ = std::exchange(other.handle_, -1);
  status_ = other.status_;
  running_ = std::exchange(other.running_, false);
  output_ = std::exchange(other.output_, {});
  errors_ = std::exchange(other.errors_, {});
}

void ChildProcess::end() {
  if (running_) {
    send_signal(SIGKILL);
    reap();
  }
  close_input();
  output_.close();
  errors_.close();
  if (handle_ >= 0) ::close(std::exchange(handle_, -1));
}

}  // namespace signalbox::tools
