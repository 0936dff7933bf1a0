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
#include <string>

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
  /// The number of routes for picks: route n takes /bench.v1.Service<n>/Get. 0: picks use the
  /// calls' own method.
  std::size_t routes = 0;
  bool sessions = false;  ///< Each pick has the cookie of a session, which it stays with.
  int updates = 1;        ///< How often the driver will change the endpoints.
  double work_ms = 0;     ///< That each call keeps its backend busy.
  int calls = 1000;       ///< That wait.
  int targets = 1;        ///< That are opened at once: `xds:///bench0`, `xds:///bench1`, …
  std::string response;   ///< That is decoded: `empty_resources` or `patterns`.
};

using Measured = absl::StatusOr<nlohmann::json>;

/// Route + pick between real calls: `p50_ns`, `p99_ns`, `picks`. gRPC's side needs the library
/// peer_pick_shim, and does not support `routes` and `sessions`.
Measured measure_pick(const MeasureOptions& options, Side& side);

/// Sync unary calls in closed loops: `p50_us`, `p99_us`, `calls_per_second`.
Measured measure_closed_loop(const MeasureOptions& options, Side& side);

/// Async calls at a rate: `cpu_us_per_call` of this process, `p50_us`, `p99_us`, `calls`, and
/// `idle`: the part of the whole machine's CPU time that was idle meanwhile.
Measured measure_cpu(const MeasureOptions& options, Side& side);

/// Async calls at a rate while the driver kills the backends of cluster `primary` and brings them
/// back. Writes a line when it is ready to be killed. Instants are of CLOCK_MONOTONIC:
/// `first_secondary_ns`, `first_primary_again_ns`, `failures_ns` (an instant for each failed call).
Measured measure_failover(const MeasureOptions& options, Side& side);

/// Async calls at a rate while the driver kills the control plane and starts it again. Writes a
/// line when the load runs: `calls`, `failed`.
Measured measure_outage(const MeasureOptions& options, Side& side);

/// Async calls, `work_ms` of work each, at a higher rate than the backends can serve:
/// `served_per_second`, `refused_per_second`, and `refused_p99_ms`, from when a call was due.
Measured measure_overload(const MeasureOptions& options, Side& side);

/// Calls that wait for their first connection. Writes a line when all of them wait: the driver then
/// starts a backend. `queued_us`: this process's CPU time per call, from the first call until all
/// are answered; `answered_ns`: the instant when all are answered. `ready_us`: the CPU time per
/// call of the same calls, made again on the open connection.
Measured measure_queued(const MeasureOptions& options, Side& side);

/// A quiet load while the driver changes the endpoints. Writes a line before each update, when it
/// is ready for it: the odd ones bring a backend of cluster `odd`, the even ones one of `even`.
/// Of each update `served_ns`, the instant (CLOCK_MONOTONIC) of that backend's first answer, and
/// `cpu_ms`, what this process used until it was quiet again, less what the load takes; and
/// `connected_mb`, its memory before.
Measured measure_eds_update(const MeasureOptions& options, Side& side);

/// `first_answer_ms` and `connected_ms` (all endpoints), since the side started; `cpu_s`: CPU time
/// so far.
Measured measure_cold_start(const MeasureOptions& options, Side& side);

/// Opens many targets at once, and calls each. `answered_ms`: the time until the last call was
/// answered. No call may fail.
Measured measure_many_targets(const MeasureOptions& options, Side& side);

/// Endpoints that all refuse. Once a call has failed for it (`refused_ms`), and `length` later:
/// `rss_mb`, `peak_mb` until then, `cpu_s` so far.
Measured measure_refused(const MeasureOptions& options, Side& side);

/// GET /metrics of 100 clusters of 100 endpoints, over loopback: `scrape_ms`, `p99_ms`, and the
/// page's `megabytes`. The metrics are made in this process. Measures signalbox alone.
Measured measure_scrape(const MeasureOptions& options, Side& side);

/// Decodes a hostile response. `answered_ms`: the time until the NACK is known. `memory_mb`: the
/// most memory in use until then, the response included. `bytes_per_byte`: the same for each byte
/// of the response. Measures signalbox alone.
Measured measure_response(const MeasureOptions& options, Side& side);

}  // namespace signalbox::bench
