// SPDX-License-Identifier: Apache-2.0
//
// process_facts — asks the system about this process, at each scrape of the metrics.
//
//   /proc ─▶ [read_process()] ─▶ ProcessFacts ─▶ metrics/process ─▶ exporter

#pragma once

#include <optional>

#include "absl/strings/string_view.h"

#include "messages/process_facts.hpp"

namespace signalbox::actors {

/// The facts of this process, now.
ProcessFacts read_process();

/// The line `btime` of /proc/stat: when the system started, in seconds since 1970.
std::optional<double> boot_time_in(absl::string_view system_stat);

}  // namespace signalbox::actors
