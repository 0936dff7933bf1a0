// SPDX-License-Identifier: Apache-2.0
#include "tools/stop_signals.hpp"

#include <algorithm>
#include <cerrno>

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace signalbox::tools {
namespace {

sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // SIGHUP comes when the terminal closes. Under nohup the signal is ignored, and this program runs
  // on.
  struct sigaction hang_up = {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);
  return signals;
}

}  // namespace

void block_stop_signals() {
  const sigset_t signals = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

std::optional<int> wait_for_stop(std::chrono::nanoseconds at_most) {
  using Clock = std::chrono::steady_clock;
  const sigset_t signals = stop_signals();
  const auto deadline = Clock::now() + at_most;
  for (;;) {
    const auto left = std::max(std::chrono::nanoseconds::zero(),
                               std::chrono::nanoseconds(deadline - Clock::now()));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    const int signal = ::sigtimedwait(&signals, nullptr, &timeout);
    if (signal > 0) return signal;
    if (errno != EINTR) return std::nullopt;
  }
}

int open_stop_descriptor() {
  const sigset_t signals = stop_signals();
  return ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

std::optional<int> take_signal(int descriptor) {
  signalfd_siginfo taken{};
  if (::read(descriptor, &taken, sizeof taken) != sizeof taken) return std::nullopt;
  return static_cast<int>(taken.ssi_signo);
}

Terminals::Terminals() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::isatty(descriptor) == 1) descriptors_.push_back(descriptor);
  }
}

bool Terminals::has_closed() const {
  return std::ranges::any_of(descriptors_, [](int descriptor) {
    pollfd terminal{descriptor, 0, 0};
    return ::poll(&terminal, 1, 0) > 0 && (terminal.revents & (POLLHUP | POLLERR)) != 0;
  });
}

}  // namespace signalbox::tools
