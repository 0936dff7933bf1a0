// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "tools/admin_client.hpp"
#include "tools/commands.hpp"
#include "tools/metrics_text.hpp"
#include "tools/stop_signals.hpp"
#include "tools/top_view.hpp"

namespace signalbox::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Takes the whole screen of a terminal. The destructor restores the former screen.
class Screen {
 public:
  Screen() {
    // SIGWINCH (a new size) must be blocked to be read from the signal descriptor.
    sigset_t resized;
    sigemptyset(&resized);
    sigaddset(&resized, SIGWINCH);
    ::pthread_sigmask(SIG_BLOCK, &resized, nullptr);
    resized_ = ::signalfd(-1, &resized, SFD_CLOEXEC | SFD_NONBLOCK);
    is_keyboard_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (is_keyboard_) {
      termios keys = before_;
      keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      // No Ctrl-Z: a command that it stops would leave its screen on the terminal.
      keys.c_cc[VSUSP] = _POSIX_VDISABLE;
      ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    std::cout << "\x1b[?1049h\x1b[?25l" << std::flush;  // Another screen, without a cursor.
  }

  ~Screen() {
    std::cout << "\x1b[?25h\x1b[?1049l" << std::flush;
    if (is_keyboard_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    ::close(resized_);
  }

  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void draw(const TopFrame& frame, const std::string& process, const std::string& trouble) const {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
      size = {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    std::string all = "\x1b[H";
    // The last line stays empty: a line end there would scroll the screen.
    std::size_t left = size.ws_row - 1U;
    if (!trouble.empty() && left > 0) {
      absl::StrAppend(&all, trouble.substr(0, size.ws_col), "\x1b[K\n");
      --left;
    }
    for (const std::string& line : top_screen(frame, process, size.ws_col, left))
      absl::StrAppend(&all, line, "\x1b[K\n");
    std::cout << all << "\x1b[J" << std::flush;
  }

  int resized() const { return resized_; }

  /// -1: there is no keyboard.
  int keyboard() const { return is_keyboard_ ? STDIN_FILENO : -1; }

 private:
  termios before_{};
  bool is_keyboard_ = false;
  int resized_ = -1;
};

enum class Wake : std::uint8_t { kTime, kResized, kStop };

// Waits until `due`, or until a new size of the terminal, the key `q` or a stop signal comes.
Wake wait_until(Clock::time_point due, int stop, const Screen* screen) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()).count();
    if (left <= 0) return Wake::kTime;
    std::array<pollfd, 3> fds{
        pollfd{stop, POLLIN, 0},
        pollfd{screen == nullptr ? -1 : screen->resized(), POLLIN, 0},
        pollfd{screen == nullptr ? -1 : screen->keyboard(), POLLIN, 0},
    };
    if (::poll(fds.data(), fds.size(), static_cast<int>(left)) < 0) continue;
    if (fds[0].revents != 0) return Wake::kStop;
    if (fds[1].revents != 0) {
      while (take_signal(fds[1].fd)) {
      }
      return Wake::kResized;
    }
    if (fds[2].revents != 0) {
      char key = 0;
      if (::read(fds[2].fd, &key, 1) != 1 || key == 'q') return Wake::kStop;
    }
  }
}

class Top {
 public:
  Top(const TopOptions& options, channel::AdminAddress address, int stop)
      : options_(options), address_(std::move(address)), stop_(stop) {}

  // Returns the exit status. An error of the first question ends the command. A later error is
  // shown if there is a screen, and else ends the command, too.
  int run() {
    auto first = ask();
    if (!first.ok()) return fail_to_ask("top", first.status());
    frame_ = view_.step(*first, absl::Now());
    return is_screen() ? on_screen() : in_lines();
  }

 private:
  static bool is_screen() {
    const char* const terminal = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) == 1 && (terminal == nullptr || std::string(terminal) != "dumb");
  }

  absl::StatusOr<std::vector<MetricSample>> ask() const {
    const auto patience = std::chrono::round<std::chrono::milliseconds>(
        std::chrono::duration<double>(options_.timeout_seconds));
    const auto text = admin_get(address_, "/metrics", patience);
    if (!text.ok()) return text.status();
    auto samples = parse_metrics_text(*text);
    if (!samples.ok())
      return absl::UnavailableError(
          absl::StrCat(channel::to_string(address_), "/metrics: ", samples.status().message()));
    return samples;
  }

  Clock::time_point next() {
    due_ += std::chrono::round<Clock::duration>(
        std::chrono::duration<double>(options_.interval_seconds));
    due_ = std::max(due_, Clock::now());
    return due_;
  }

  bool is_over() { return options_.count > 0 && ++shown_ >= options_.count; }

  int on_screen() {
    const Screen screen;
    std::string trouble;
    for (;;) {
      screen.draw(frame_, channel::to_string(address_), trouble);
      const auto due = next();
      Wake wake = Wake::kResized;
      while ((wake = wait_until(due, stop_, &screen)) == Wake::kResized)
        screen.draw(frame_, channel::to_string(address_), trouble);
      if (wake == Wake::kStop || is_over()) return kExitOk;
      const auto samples = ask();
      trouble = samples.ok() ? "" : one_line(samples.status().message());
      if (samples.ok()) frame_ = view_.step(*samples, absl::Now());
    }
  }

  int in_lines() {
    for (;;) {
      if (wait_until(next(), stop_, nullptr) == Wake::kStop) return kExitOk;
      const auto samples = ask();
      if (!samples.ok()) {
        say("top", samples.status().message());
        return kExitFailed;
      }
      std::cout << top_lines(view_.step(*samples, absl::Now())) << std::flush;
      if (!std::cout) return kExitFailed;
      if (is_over()) return kExitOk;
    }
  }

  const TopOptions& options_;
  const channel::AdminAddress address_;
  const int stop_;
  TopView view_;
  TopFrame frame_;
  Clock::time_point due_ = Clock::now();
  std::uint64_t shown_ = 0;
};

}  // namespace

int run_top(const TopOptions& options) {
  block_stop_signals();
  auto address = channel::parse_admin_address(options.admin);
  if (!address.ok()) return fail_to_ask("top", address.status());
  const int stop = open_stop_descriptor();
  if (stop < 0) return fail_to_ask("top", absl::InternalError("cannot wait for signals"));
  const int status = Top(options, *std::move(address), stop).run();
  ::close(stop);
  return status;
}

}  // namespace signalbox::tools
