// SPDX-License-Identifier: Apache-2.0
//
// top_view — the state of a process's clusters, from its metrics at two instants.
//
//   samples, now ─▶ [TopView::step] ─▶ TopFrame ─┬▶ top_screen ─▶ a terminal
//                                                └▶ top_lines ──▶ a pipe or a file
//
// A rate is the growth of a counter since the step before, divided by the time between the two. If
// a counter has fallen, the process was restarted, and there are no rates before the next step.

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "tools/metrics_text.hpp"

namespace signalbox::tools {

/// The calls of a cluster, or of a process, between two steps. Each attempt of a retried call
/// counts as a call.
struct TopCalls {
  std::optional<double> per_second;     ///< Calls that were started; nullopt: no rates.
  std::optional<double> error_percent;  ///< The failed share of the calls that ended.
  std::optional<double> active;         ///< Calls in flight now; nullopt: calls are not counted.
  /// Median time of the attempts that ended; nullopt: none ended, or no rates.
  std::optional<double> p50_seconds;
  std::optional<double> p99_seconds;

  friend bool operator==(const TopCalls&, const TopCalls&) = default;
};

struct TopRow {
  std::string cluster;
  std::string aggregate;        ///< The row counts this aggregate's calls; empty: all calls.
  std::optional<int> priority;  ///< The priority that carries the calls; -1: none.
  TopCalls calls;
  std::optional<int> ready;  ///< Endpoints that are READY.
  std::optional<int> endpoints;
  double failovers = 0;  ///< Failovers since the process started.

  friend bool operator==(const TopRow&, const TopRow&) = default;
};

struct TopFailover {
  absl::Time seen;
  std::string cluster;
  std::string direction;
  std::string reason;
  double times = 1;
  std::optional<int> from;  ///< The priority at the step before.
  std::optional<int> to;

  friend bool operator==(const TopFailover&, const TopFailover&) = default;
};

struct TopFrame {
  absl::Time time;
  int xds_servers = 0;
  int xds_connected = 0;
  TopCalls all;
  std::vector<TopRow> rows;          ///< An aggregate is followed by its leaves.
  std::vector<TopFailover> fresh;    ///< Failovers since the step before.
  std::vector<TopFailover> history;  ///< The newest first, kHistory at most.
};

class TopView {
 public:
  static constexpr std::size_t kHistory = 8;

  /// Steps come in the order of `now`.
  TopFrame step(const std::vector<MetricSample>& samples, absl::Time now);

 private:
  void note_failovers(const std::vector<MetricSample>& samples, TopFrame& frame);

  std::vector<MetricSample> before_;
  absl::Time before_time_ = absl::InfinitePast();
  std::vector<TopFailover> history_;
};

/// A table for a terminal of this size: no line is longer than `columns`, and there are at most
/// `rows` lines. Control characters in names are escaped.
std::vector<std::string> top_screen(const TopFrame& frame,
                                    const std::string& process,
                                    std::size_t columns,
                                    std::size_t rows);

/// A line of `name=value` pairs for each of the frame's rows, and one for each failover since the
/// step before.
std::string top_lines(const TopFrame& frame);

}  // namespace signalbox::tools
