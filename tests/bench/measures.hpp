// SPDX-License-Identifier: Apache-2.0
//
// What one client process can measure; each function returns the line of JSON that the driver
// reads.
//
//   client.cpp (options) ─▶ [measure_…(options, side)] ─▶ JSON ─▶ bench.py: the rows
//
// Each calls the same generated stub with the same payload, on whichever side it is given.

#pragma once

#include <chrono>
#include <cstddef>

#include "absl/status/statusor.h"
#include <nlohmann/json.hpp>

#include "tests/bench/side.hpp"

namespace signalbox::bench {

struct MeasureOptions {
  int endpoints = 2;  ///< How many have to be connected before anything is measured.
  int port = 0;       ///< That all of them listen on.
  std::size_t threads = 1;
  std::chrono::duration<double> length{1};
  double rate = 1000;  ///< Calls a second, of open loops.
};

using Measured = absl::StatusOr<nlohmann::json>;

/// Route + pick between real calls: `p50_ns`, `p99_ns`, `picks`. The peer's side needs the shim.
Measured measure_pick(const MeasureOptions& options, Side& side);

/// Sync unary calls in closed loops: `p50_us`, `p99_us`, `calls_per_second`.
Measured measure_closed_loop(const MeasureOptions& options, Side& side);

/// Async calls at a rate: `cpu_us_per_call` of this process, `p50_us`, `p99_us`, `calls`, and
/// which part of the whole machine's CPU was `idle` meanwhile.
Measured measure_cpu(const MeasureOptions& options, Side& side);

/// Async calls at a rate while the driver kills the backends of cluster `primary` and brings them
/// back. Writes a line when it is ready to be killed. Instants are of CLOCK_MONOTONIC:
/// `first_secondary_ns`, `first_primary_again_ns`, `failures_ns` (an instant for each failed call).
Measured measure_failover(const MeasureOptions& options, Side& side);

/// Async calls at a rate while the driver kills the control plane and starts it again. Writes a
/// line when the load runs: `calls`, `failed`.
Measured measure_outage(const MeasureOptions& options, Side& side);

}  // namespace signalbox::bench
