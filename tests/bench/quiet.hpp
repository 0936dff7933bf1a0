// SPDX-License-Identifier: Apache-2.0
//
// The CPU time that this process uses until it is quiet again: what a change costs, with everything
// that it starts.
//
//   idle_cpu() ─▶ a change ─▶ cpu_until_quiet() ─▶ CPU seconds

#pragma once

#include <chrono>

namespace signalbox::bench {

/// The CPU seconds of a window of 100 ms without a change: the mean of so many windows.
double idle_cpu(int windows);

/// Waits until several windows in a row are quiet. Begins no window later than `patience` after
/// `since`. Returns the CPU seconds used from `since`, when the process had used `cpu_before`,
/// until the end of the last window that was not quiet, or else of the first window; without
/// `idle` seconds for each window.
double cpu_until_quiet(double idle,
                       double cpu_before,
                       std::chrono::steady_clock::time_point since,
                       std::chrono::seconds patience);

}  // namespace signalbox::bench
