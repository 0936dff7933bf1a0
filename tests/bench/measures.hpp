// SPDX-License-Identifier: Apache-2.0
//
// The measurements that a client process can make. Each function makes one measurement, and returns
// the line of JSON that the driver (bench.py) reads.
//
//   client.cpp (options) ─▶ [measure_…(options, side)] ─▶ JSON ─▶ bench.py: the rows
//
// A function that measures both sides makes the same calls on signalbox's side and on gRPC's side:
// with the same generated stub or the same load engine, and with the same payload.

#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include <nlohmann/json.hpp>

#include "tests/bench/side.hpp"

namespace signalbox::bench {

struct MeasureOptions {
  int endpoints = 2;  ///< The number of connections to `port` that a measurement waits for.
  int port = 0;       ///< The port on which the endpoints of these connections listen.
  std::size_t threads = 1;
  std::chrono::duration<double> length{1};
  double rate = 1000;  ///< The rate of an open loop, in calls per second.
  /// The number of routes for picks: route n takes /bench.v1.Service<n>/Get. 0: picks use the
  /// calls' own method.
  std::size_t routes = 0;
  bool sessions = false;  ///< Each pick has a session's cookie, and must stay on its endpoint.
  bool weights = false;   ///< Endpoints report their load, and the policy must use it.
  int updates = 1;        ///< The number of times that the driver will change the endpoints.
  double work_ms = 0;     ///< For measure_overload(): how long each call keeps its backend busy.
  /// Addresses of endpoints, for measure_failover() and measure_eds_update(), which say which.
  std::vector<std::string> addresses;
  int calls = 1000;  ///< The number of waiting calls, for measure_queued().
  int targets = 1;   ///< Targets opened at once: `xds:///bench0`, `xds:///bench1`, …
  /// For measure_growth(): the number of targets, from the first one on, that each update changes.
  std::size_t changed_targets = 1;
  std::string response;  ///< The response to decode: `empty_resources` or `patterns`.
};

using Measured = absl::StatusOr<nlohmann::json>;

/// Times the choice of route and endpoint, between real calls: `p50_ns`, `p99_ns`, `picks`. gRPC's
/// side needs the library peer_pick_shim, and does not support `routes`, `sessions` and `weights`.
Measured measure_pick(const MeasureOptions& options, Side& side);

/// Makes synchronous unary calls in closed loops: `p50_us`, `p99_us`, `calls_per_second`.
Measured measure_closed_loop(const MeasureOptions& options, Side& side);

/// Makes asynchronous calls at a rate: `cpu_us_per_call` of this process, without the CPU time of
/// the engine's own work, which is `engine_us` per call; `p50_us`, `p99_us`, `calls`; and `idle`,
/// the share of the whole machine's CPU time that was idle meanwhile.
Measured measure_cpu(const MeasureOptions& options, Side& side);

/// Makes asynchronous calls at a rate while the driver kills the backends of the first cluster, at
/// `addresses`, and starts them again. Writes a line when the driver may kill the backends. Results
/// are instants of CLOCK_MONOTONIC: `first_secondary_ns`, `first_primary_again_ns`, and
/// `failures_ns` (one instant for each failed call).
Measured measure_failover(const MeasureOptions& options, Side& side);

/// Makes asynchronous calls at a rate while the driver kills the control plane and starts it again.
/// Writes a line when the load runs. Results: `calls`, `failed`.
Measured measure_outage(const MeasureOptions& options, Side& side);

/// Makes asynchronous calls, each with `work_ms` of work, at a higher rate than the backends can
/// serve: `served_per_second`, `refused_per_second`, and `refused_p99_ms`, the time from when a
/// call was due until its refusal.
Measured measure_overload(const MeasureOptions& options, Side& side);

/// Makes asynchronous calls at a rate to backends of different speeds: `p50_ms` and `p99_ms`, from
/// when a call was due until its answer; `calls`; and `backends`, the number of backends that have
/// answered since the load began.
Measured measure_tail(const MeasureOptions& options, Side& side);

/// Calls that wait for their first connection. Writes a line when all have begun: the driver then
/// gives the cluster its endpoint. `queued_us`: this process's CPU time per call, from the first
/// call until all are answered; `answered_ns`: the instant when all are answered. `ready_us`: the
/// CPU time per call of the same calls, made again on the open connection.
Measured measure_queued(const MeasureOptions& options, Side& side);

/// Makes calls at a low rate while the driver changes the endpoints. Writes a line before each
/// update, when this process is ready for the update. The first, third, … update adds the second of
/// `addresses`; the second, fourth, … adds the first of them. Results of each update:
/// `served_ns`, the instant (CLOCK_MONOTONIC) of the new backend's first answer; and `cpu_ms`, the
/// CPU time of this process until it was quiet again, without the cost of the calls. Result of the
/// measurement: `connected_mb`, the memory of this process before the first update.
Measured measure_eds_update(const MeasureOptions& options, Side& side);

/// Measures a start. Results: `first_answer_ms`, the time from the making of the side until the
/// first call was answered; `connected_ms`, the time from the making of the side until all
/// endpoints were connected; `cpu_s`, the CPU time of this process so far, without that of counting
/// the connections.
Measured measure_cold_start(const MeasureOptions& options, Side& side);

/// Opens many targets at once, and calls each. `answered_ms`: the time until the last call was
/// answered. No call may fail.
Measured measure_many_targets(const MeasureOptions& options, Side& side);

/// Measures what a world costs: `options.targets` targets, opened at once by a side that serves a
/// small target of its own. Waits for `options.endpoints` connections, if `options.port` is not 0.
/// Writes a line before each update, when this process is ready for it. `start_ms`: the time until
/// the first pick of each target; `start_cpu_ms`: the CPU time of this process until it is quiet;
/// `memory_mb`: the resident memory that was added by then; `pick_ns`: the median of picks with
/// cold caches; `dump_cpu_ms` and `dump_mb`: the CPU time for a dump, and its size;
/// `update_cpu_ms`: the CPU time until the process is quiet again after an update, the median.
/// Measures signalbox alone.
Measured measure_growth(const MeasureOptions& options, Side& side);

/// Measures a cluster with endpoints that all refuse connections. `refused_ms`: the time until the
/// first call failed. Results `length` later: `rss_mb`, the resident memory; `peak_mb`, the most
/// resident memory until then; `cpu_s`, the CPU time so far.
Measured measure_refused(const MeasureOptions& options, Side& side);

/// Requests /metrics over loopback, for 100 clusters of 100 endpoints: `scrape_ms`, `p99_ms`, and
/// `megabytes`, the size of the page. The metrics are made in this process. Measures signalbox
/// alone.
Measured measure_scrape(const MeasureOptions& options, Side& side);

/// Requests /ready over loopback, while one dump of ten thousand endpoints after another is made:
/// `ready_ms`, `p99_ms`, and `dumps`, the number of dumps. Measures signalbox alone.
Measured measure_ready(const MeasureOptions& options, Side& side);

/// Decodes a hostile response. `answered_ms`: the time until the NACK is known. `memory_mb`: the
/// most memory in use until then, the response included. `bytes_per_byte`: that memory, in bytes,
/// divided by the size of the response. Measures signalbox alone.
Measured measure_response(const MeasureOptions& options, Side& side);

}  // namespace signalbox::bench
