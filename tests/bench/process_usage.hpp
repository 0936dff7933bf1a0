// SPDX-License-Identifier: Apache-2.0
//
// What this process has used so far: CPU of all its threads or of the one that asks, resident
// memory.

#pragma once

#include <fstream>
#include <string>

#include "absl/strings/string_view.h"
#include <sys/resource.h>
#include <time.h>

namespace signalbox::bench {

/// Of all threads (RUSAGE_SELF), or of the caller's own (RUSAGE_THREAD).
inline double cpu_seconds(int whose = RUSAGE_SELF) {
  rusage usage{};
  ::getrusage(whose, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Of the caller's thread, to the nanosecond.
inline double thread_cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

/// A line of /proc/self/status, in MB of 10^6 bytes: "VmRSS" is resident now, "VmHWM" the most
/// there ever was. 0 where there is no such line.
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
