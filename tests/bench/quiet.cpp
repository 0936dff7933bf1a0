// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/quiet.hpp"

#include <thread>

#include "tests/bench/process_usage.hpp"

namespace signalbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kQuietWindow = std::chrono::milliseconds(100);
constexpr int kQuietWindows = 5;
/// A window is quiet if its CPU time is at most twice that of an idle window plus this slack.
constexpr double kSlackSeconds = 0.003;

double cpu_of_a_window() {
  const double before = cpu_seconds();
  std::this_thread::sleep_for(kQuietWindow);
  return cpu_seconds() - before;
}

}  // namespace

double idle_cpu(int windows) {
  const double before = cpu_seconds();
  std::this_thread::sleep_for(windows * kQuietWindow);
  return (cpu_seconds() - before) / windows;
}

double cpu_until_quiet(double idle,
                       double cpu_before,
                       Clock::time_point since,
                       std::chrono::seconds patience) {
  double busy = 0;
  int quiet = 0;
  while (quiet < kQuietWindows && Clock::now() - since < patience) {
    const bool is_quiet = cpu_of_a_window() <= 2 * idle + kSlackSeconds;
    quiet = is_quiet ? quiet + 1 : 0;
    if (!is_quiet || busy == 0) {
      const double windows = std::chrono::duration<double>(Clock::now() - since) / kQuietWindow;
      busy = cpu_seconds() - cpu_before - windows * idle;
    }
  }
  return busy;
}

}  // namespace signalbox::bench
