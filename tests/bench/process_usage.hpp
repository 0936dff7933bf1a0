// SPDX-License-Identifier: Apache-2.0
//
// The resources that this process has used so far: the CPU time of all threads or of the calling
// thread, and resident memory.

#pragma once

#include <fstream>
#include <string>

#include "absl/strings/string_view.h"
#include <time.h>

namespace signalbox::bench {

/// CPU time in seconds: of all threads, or of the calling thread (CLOCK_THREAD_CPUTIME_ID).
inline double cpu_seconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec used{};
  ::clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

/// The value of a line of /proc/self/status, in MB of 10^6 bytes. "VmRSS" is the resident memory
/// now, "VmHWM" its highest value since the last reset (see response_measure.cpp). 0 if there is no
/// such line.
inline double status_megabytes(absl::string_view name) {
  std::ifstream lines("/proc/self/status");
  std::string word;
  while (lines >> word) {
    double kib = 0;
    if (word == std::string(name) + ":" && lines >> kib) return kib * 1024 / 1e6;
    std::getline(lines, word);
  }
  return 0;
}

}  // namespace signalbox::bench
