// SPDX-License-Identifier: Apache-2.0
#include "tools/stop_signals.hpp"

#include <algorithm>
#include <cerrno>

#include <signal.h>
#include <sys/signalfd.h>

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

}  // namespace signalbox::tools
