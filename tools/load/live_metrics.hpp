// SPDX-License-Identifier: Apache-2.0
//
// LiveMetrics — a load while it runs, as Prometheus reads it.
//
//   LiveCounts of each process, acts ─▶ [LiveMetrics] ─ text() ─▶ MetricsServer, GET /metrics
//
// Acts are the steps of the load's script, such as killing a process. docs/load.md lists the verbs
// of a script, and the metrics. The metrics' names never change, because dashboards depend on them.
// Thread-safe: the load's thread updates the values, and the HTTP server's thread reads them.

#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tools/load/live_counts.hpp"

namespace signalbox::tools {

class LiveMetrics {
 public:
  /// A side, and the counts of each of its processes.
  struct Side {
    std::string name;

    struct Process {
      LiveCounts counts;
      bool is_alive = true;
    };

    std::vector<Process> processes;
  };

  /// Every side has its series from the beginning. Only the series of a code other than OK comes
  /// with the first call that ends so. `is_http`: the calls have no gRPC codes, so there is no
  /// series of OK.
  LiveMetrics(const std::vector<std::string>& sides, std::size_t processes, bool is_http);

  /// Replaces the counts of a process. Precondition: both indexes are in range.
  void set(std::size_t side, std::size_t process, LiveCounts counts);
  /// Call this when the process has ended. Its counts stay in the sums of its side.
  void ended(std::size_t side, std::size_t process);
  void act_was_done(std::string name, bool is_fault, double unix_seconds);

  /// All metrics in Prometheus' text format.
  std::string text() const;

 private:
  struct Act {
    std::string name;
    bool is_fault;
    double unix_seconds;
  };

  const bool is_http_;
  mutable std::mutex mutex_;
  std::vector<Side> sides_;
  std::vector<Act> acts_;
};

}  // namespace signalbox::tools
