// SPDX-License-Identifier: Apache-2.0
//
// ProcessFacts — what the system tells about this process, for Prometheus' standard metrics.
//
//   /proc ─▶ actors/io/process_facts ─▶ [ProcessFacts] ─▶ metrics/process

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace signalbox {

struct ProcessFacts {
  std::string stat;  ///< The text of /proc/self/stat; empty: unknown.
  double ticks_per_second = 0;
  double page_bytes = 0;
  std::optional<double> boot_time;  ///< When the system started, in seconds since 1970.
  std::optional<std::uint64_t> open_descriptors;
  std::optional<std::uint64_t> most_descriptors;
};

}  // namespace signalbox
